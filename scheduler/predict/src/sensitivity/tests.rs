//! Tests of the readers of tables.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_policy::SensitivityTable;

use super::format::MOST_PROFILES;
use super::{MOST_FILE_BYTES, csv_table, read_sensitivity, synergy};

const GIB: f64 = (1_u64 << 30) as f64;

/// A directory that is removed with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("cohabit-sensitivity-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn tables(text: &str) -> BTreeMap<String, Arc<SensitivityTable>> {
    csv_table::read(text).unwrap()
}

fn refusal(text: &str) -> String {
    csv_table::read(text).unwrap_err().to_string()
}

#[test]
fn rows_in_any_order_are_the_tables_of_their_profiles() {
    let text = "memory_gb, speed,profile ,cores\n62.5,3,image,4\n20,1,image,2\n,7,text,0.5\n20,2,image,4\n62.5,2.5,image,2\n";
    let tables = tables(text);
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["image", "text"]);
    let (image, text) = (&tables["image"], &tables["text"]);
    assert_eq!((image.cores(), image.memory()), (&[2.0, 4.0][..], &[20.0 * GIB, 62.5 * GIB][..]));
    assert_eq!([image.speed(2.0, 20.0 * GIB), image.speed(4.0, 62.5 * GIB)], [1.0, 3.0]);
    assert_eq!(image.speed(4.0, 19.0 * GIB), 0.0);
    assert_eq!((text.memory(), text.speed(0.5, 0.0)), (&[0.0][..], 7.0));
}

#[test]
fn a_wrong_file_is_refused_with_the_place_and_the_remedy() {
    let rows = |rows: &str| refusal(&format!("profile,cores,memory_gb,speed\n{rows}"));
    for (refusal, words) in [
        (refusal(""), "it has no speeds: write the header profile,cores,memory_gb,speed"),
        (refusal("\n\n"), "it has no speeds"),
        (rows(""), "it has no speeds"),
        (refusal("profile,cores,ram,speed\n"), "line 1: unknown column 'ram': the columns are profile,"),
        (refusal("profile,cores,memory_gb\n"), "line 1: missing column 'speed'"),
        (refusal("profile,cores,memory_gb,speed,speed\n"), "line 1: repeated column 'speed'"),
        (rows("a,1,20,1\na,2,20"), "line 3: it has 3 cells instead of profile,cores,memory_gb,speed"),
        (rows("a,1,20,1\n,2,20,1"), "line 3, column 'profile': the cell is empty: write the group"),
        (rows("a,many,20,1"), "line 2, column 'cores': 'many' is not a number of cores above 0"),
        (rows("a,0,20,1"), "'0' is not a number of cores above 0"),
        (rows("a,inf,20,1"), "'inf' is not a number of cores above 0"),
        (rows("a,1,20G,1"), "line 2, column 'memory_gb': '20G' is not a number of gigabytes"),
        (rows("a,1,-1,1"), "'-1' is not a number of gigabytes from 0 to 1000000"),
        (rows("a,1,1e7,1"), "'1e7' is not a number of gigabytes"),
        (rows("a,1,20,fast"), "line 2, column 'speed': 'fast' is not a speed above 0"),
        (rows("a,1,20,0"), "'0' is not a speed above 0"),
        (rows("a,1,20,NaN"), "'NaN' is not a speed above 0"),
        (
            rows("a,1,20,1\na,1.0,20.0,1"),
            "line 3: profile 'a' has a second speed for 1 cores and 20 GiB: leave",
        ),
        (rows("a,1,,1\na,1,,1"), "line 3: profile 'a' has a second speed for 1 cores: leave one"),
        (rows("a,1,,1\na,2,20,1"), "line 3: profile 'a' has rows with memory and rows without: write"),
        (rows("a,1,10,1\na,2,20,2"), "profile 'a': it has no speed for 1 cores and 20 GiB: measure each"),
        (rows("a,1,10,2\na,2,10,1"), "profile 'a': its speed decreases to 1 at 2 cores and 10 GiB: more"),
    ] {
        assert!(refusal.contains(words), "{refusal}");
        assert!(!refusal.contains('\n'), "{refusal}");
    }
}

#[test]
fn numbers_of_profiles_rows_and_levels_are_bounded() {
    let header = "profile,cores,memory_gb,speed\n";
    let many: String = (0..=MOST_PROFILES).map(|number| format!("p{number},1,,1\n")).collect();
    assert!(refusal(&format!("{header}{many}")).starts_with("it has more than 10000 profiles"));
    let many: String = (1..=1_000_001).map(|cores| format!("a,{cores},,1\n")).collect();
    assert!(refusal(&format!("{header}{many}")).starts_with("it has more than 1000000 rows"));
    // Many cores and as many amounts of memory are a large grid with few points in it.
    let many: String = (1..=100_000).map(|number| format!("a,{number},{number},1\n")).collect();
    assert!(refusal(&format!("{header}{many}")).starts_with("profile 'a': it needs 1 to 256 numbers"));
}

#[test]
fn a_file_is_read_within_its_bounds() {
    let directory = Directory::new("bounds");
    let file = directory.write("tables.csv", "\u{feff}profile,cores,memory_gb,speed\na,1,,1\n");
    let (tables, left_out) = read_sensitivity(&file).unwrap();
    assert_eq!((tables.len(), left_out.len()), (1, 0));
    let refusal = |path: &Path| read_sensitivity(path).unwrap_err().to_string();
    let missing = directory.0.join("none.csv");
    assert!(refusal(&missing).starts_with(&format!("{}: it cannot be read: ", missing.display())));
    let binary = directory.write("binary.csv", [0xff, 0xfe]);
    assert!(
        refusal(&binary).contains("binary.csv: it is not UTF-8 text: write it as CSV"),
        "{}",
        refusal(&binary)
    );
    let large = directory.write("large.csv", "");
    File::options().write(true).open(&large).unwrap().set_len(MOST_FILE_BYTES + 1).unwrap();
    assert!(refusal(&large).contains("it has more than 64 MiB: split it"), "{}", refusal(&large));
    let device = refusal(Path::new("/dev/zero"));
    assert!(device.starts_with("/dev/zero: it is neither a file nor a directory"), "{device}");
}

/// A model as Synergy writes it, with this cell for the first row and column, and this many rows.
fn model(first: &str, rows: usize) -> String {
    let row = |number: usize| format!("             [{first}, {0}, {0},{0} ,{0}], # a row\n", 1 + number);
    let rows: String = (0..rows).map(row).collect();
    format!(
        "import numpy as np\n\nclass some_1(ModelStats):\n    def update_stats(self):\n        self.mem = 62.5\n        \
         self.tput = np.array([\n{rows}             ])\n\n             #[9,9,9, 9]\n"
    )
}

#[test]
fn a_first_column_of_thrashing_speeds_is_left_out() {
    let thrashing = synergy::parse_model(&model("0.1", 9)).unwrap();
    assert_eq!(thrashing.memory().first(), Some(&(62.5 * GIB)));
    assert_eq!([thrashing.speed(1.0, 62.5 * GIB), thrashing.speed(24.0, 250.0 * GIB)], [1.0, 9.0]);
    let whole = synergy::parse_model(&model("1", 9)).unwrap();
    assert_eq!((whole.memory().len(), whole.memory()[0]), (5, (20.8 * GIB).round()));
    assert_eq!(whole.cores(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0]);
}

#[test]
fn a_model_of_another_form_is_refused() {
    for (text, words) in [
        (String::new(), "it does not assign self.tput = np.array"),
        ("# self.tput = np.array([[1]])".to_owned(), "it does not assign self.tput"),
        ("x = self.tput[0]".to_owned(), "it does not assign self.tput"),
        (model("0.1", 8), "self.tput is not 9 rows of 5 speeds"),
        (model("", 9), "self.tput is not 9 rows of 5 speeds"),
        (model("fast", 9), "'fast' in self.tput is not a number"),
        (model("2", 9), "its speed decreases to 1 at 1 cores and 62.5 GiB"),
        (model("0", 9), "its speed for 1 cores and 20.8 GiB is 0"),
        (model("1", 9).replace(']', ""), "self.tput does not end: the file is incomplete"),
        ("self.tput = np.array(".to_owned(), "self.tput does not end"),
    ] {
        let refusal = synergy::parse_model(&text).unwrap_err();
        assert!(refusal.contains(words), "{text}: {refusal}");
    }
}

#[test]
fn a_bad_model_does_not_make_the_others_unusable() {
    let directory = Directory::new("models");
    directory.write("one_1.py", model("0.1", 9));
    directory.write("one_2.py", "self.tput = np.array([[0,0,0,0]])");
    directory.write("two_1.py", model("5", 9));
    directory.write("__init__.py", "from models.one_1 import one_1\n");
    fs::create_dir(directory.0.join("three_1.py")).unwrap();
    let (tables, left_out) = read_sensitivity(&directory.0).unwrap();
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["one"]);
    let left_out = left_out.join("\n");
    assert!(left_out.contains("three_1.py is left out: it is neither a file nor"), "{left_out}");
    assert!(left_out.contains("two_1.py is left out: its speed decreases to 1 at 1 cores"), "{left_out}");
}

#[test]
fn a_directory_without_a_table_is_refused() {
    let directory = Directory::new("empty");
    let refusal = || read_sensitivity(&directory.0).unwrap_err().to_string();
    assert!(
        refusal().contains("it has no tables: give a CSV file, or a directory with Synergy's files *_1.py")
    );
    directory.write("bad_1.py", "nothing");
    assert!(refusal().contains("bad_1.py is left out: it does not assign self.tput"), "{}", refusal());
}
