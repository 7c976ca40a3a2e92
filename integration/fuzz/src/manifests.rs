//! Lists of the files of code snapshots, which users send and workers make folders of.

use std::path::{Component, Path};

use cohabit_store::Manifest;

/// No path leads out of the folder, nothing lies below a file, and what is read is written back alike.
pub(crate) fn manifests(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    for file in manifest.files() {
        let path = Path::new(&file.path);
        assert!(path.components().all(|part| matches!(part, Component::Normal(_))), "{path:?}");
        let mut above = path.ancestors().skip(1).filter_map(Path::to_str);
        assert!(above.all(|path| manifest.file(path).is_none()), "{path:?} lies below a file");
    }
    assert_eq!(Manifest::decode(&manifest.encode().1), Ok(manifest));
}
