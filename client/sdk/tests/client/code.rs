//! Snapshots of code: which files of a folder belong to one, what of them travels, and how they are read.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use cohabit_client::types::{Bytes, JobId, PIECE_BYTES, RefusalCode, SubmitReceipt};
use cohabit_client::{
    Client, CodeError, CodeFolder, Error, FileContent, FileSelection, JobBuilder, MOST_SNAPSHOT_BYTES,
    Submission,
};
use tempfile::TempDir;

use crate::kit::{Answer, Call, Cluster, FakeHead, Turn, refusal};

/// A folder that goes away with the test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A work tree of git without files; none where git is missing.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn under_git() -> Option<Folder> {
        let folder = Folder::new();
        if Command::new("git").arg("--version").output().is_err() {
            eprintln!("skipped: there is no git");
            return None;
        }
        folder.git("", &["init", "--quiet"]);
        Some(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn git(&self, below: &str, arguments: &[&str]) {
        let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
        let safe = ["-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"];
        let mut git = Command::new("git");
        let output = git
            .current_dir(self.path().join(below))
            .args(identity)
            .args(safe)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    async fn scan(&self, selection: FileSelection) -> CodeFolder {
        CodeFolder::scan(self.path(), selection).await.unwrap()
    }

    async fn refusal(&self, selection: FileSelection) -> CodeError {
        match CodeFolder::scan(self.path(), selection).await {
            Err(Error::Code(error)) => error,
            other => panic!("{other:?}"),
        }
    }
}

fn paths(code: &CodeFolder) -> Vec<&str> {
    code.manifest().files().iter().map(|file| file.path.as_str()).collect()
}

async fn head(cluster: &Cluster) -> (FakeHead, Client) {
    let head = cluster.head([]).await;
    let client = cluster.client_of(head.address);
    (head, client)
}

/// How many pieces of files each message carried.
fn pieces(head: &FakeHead) -> Vec<usize> {
    let pieces = |call: &Call| {
        let Call::PutContent(pieces) = call else { return None };
        Some(pieces.len())
    };
    head.calls().iter().filter_map(pieces).collect()
}

#[tokio::test]
async fn git_decides_which_files_belong_to_a_snapshot() {
    let Some(folder) = Folder::under_git() else { return };
    for path in ["train.py", "tracked.log", "new.py", "noise.log", "gone.py", "src/model.py"] {
        folder.write(path, path);
    }
    folder.git("", &["add", "train.py", "tracked.log", "gone.py", "src/model.py"]);
    folder.git("", &["commit", "--quiet", "-m", "start"]);
    folder.write(".gitignore", "*.log\n");
    fs::remove_file(folder.path().join("gone.py")).unwrap();
    let code = folder.scan(FileSelection::Git).await;
    assert_eq!(paths(&code), [".gitignore", "new.py", "src/model.py", "tracked.log", "train.py"]);
    assert_eq!((code.root(), code.workdir()), (folder.path().as_path(), folder.path().to_str().unwrap()));
}

#[tokio::test]
async fn the_folder_is_the_work_tree_around_the_working_directory() {
    let Some(folder) = Folder::under_git() else { return };
    folder.write("src/deep/model.py", "");
    folder.write("data.csv", "");
    symlink("src/deep", folder.path().join("short")).unwrap();
    let deep = folder.path().join("src/deep");
    for workdir in [deep.clone(), folder.path().join("src/../src/deep"), folder.path().join("short")] {
        let code = CodeFolder::scan(&workdir, FileSelection::Git).await.unwrap();
        assert_eq!(paths(&code), ["data.csv", "short", "src/deep/model.py"]);
        assert_eq!((code.root(), Path::new(code.workdir())), (folder.path().as_path(), deep.as_path()));
    }
    let below = CodeFolder::scan_below(folder.path().join("src"), FileSelection::Git).await.unwrap();
    assert_eq!(paths(&below), ["deep/model.py"]);
}

#[tokio::test]
async fn files_of_submodules_and_nested_repositories_belong_to_it() {
    let Some(folder) = Folder::under_git() else { return };
    let Some(library) = Folder::under_git() else { return };
    library.write("lib.py", "lib");
    library.write("deep/.gitignore", "*.o\n");
    library.write("deep/x.o", "");
    library.git("", &["add", "."]);
    library.git("", &["commit", "--quiet", "-m", "start"]);
    let url = library.path();
    folder.git("", &["submodule", "--quiet", "add", url.to_str().unwrap(), "vendor/lib"]);
    folder.write("vendor/lib/deep/y.o", "");
    folder.write("nested/a.py", "");
    folder.git("nested", &["init", "--quiet"]);
    folder.git("nested", &["add", "."]);
    folder.git("nested", &["commit", "--quiet", "-m", "start"]);
    folder.write("nested/b.py", "");
    folder.write("main.py", "");
    let expected = [
        ".gitmodules",
        "main.py",
        "nested/a.py",
        "nested/b.py",
        "vendor/lib/deep/.gitignore",
        "vendor/lib/lib.py",
    ];
    assert_eq!(paths(&folder.scan(FileSelection::Git).await), expected);
}

#[tokio::test]
async fn links_and_executable_files_stay_what_they_are() {
    let Some(folder) = Folder::under_git() else { return };
    folder.write("run.sh", "#!/bin/sh\n");
    folder.write("old/inside.py", "");
    fs::set_permissions(folder.path().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/srv/data", folder.path().join("data")).unwrap();
    folder.git("", &["add", "."]);
    // What git tracks below it is not there any more.
    fs::rename(folder.path().join("old"), folder.path().join(".git/old")).unwrap();
    symlink(".git/old", folder.path().join("old")).unwrap();
    for selection in [FileSelection::Git, FileSelection::All] {
        let code = folder.scan(selection).await;
        assert_eq!(paths(&code), ["data", "old", "run.sh"], "{selection:?}");
        assert_eq!(code.manifest().file("data"), Some(&FileContent::Link("/srv/data".into())));
        let script = code.manifest().file("run.sh").unwrap();
        assert!(matches!(script, FileContent::Stored { size: 10, is_executable: true, .. }), "{script:?}");
    }
}

#[tokio::test]
async fn all_files_are_those_below_the_working_directory() {
    let folder = Folder::new();
    folder.write("a/b.py", "");
    folder.write("a/.git/config", "");
    folder.write("c.py", "");
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    assert_eq!(paths(&folder.scan(FileSelection::All).await), ["a/b.py", "c.py"]);
    assert!(
        matches!(folder.refusal(FileSelection::Git).await, CodeError::NotUnderGit(at) if at == folder.path())
    );
}

#[tokio::test]
async fn what_git_says_and_a_remedy_are_passed_on() {
    let Some(folder) = Folder::under_git() else { return };
    let everything = [folder.path(), folder.path().join(".git")];
    if everything.iter().any(|path| chown(path, Some(61_200), None).is_err()) {
        eprintln!("skipped: only root can give a folder to another user");
        return;
    }
    let refused = folder.refusal(FileSelection::Git).await.to_string();
    assert!(refused.contains("dubious ownership") && refused.contains("--snapshot=all"), "{refused}");
    let missing = CodeFolder::scan(folder.path().join("none"), FileSelection::All).await.unwrap_err();
    assert!(matches!(missing, Error::Code(CodeError::Folder { .. })), "{missing}");
}

#[tokio::test]
async fn patterns_leave_files_out_and_take_some_in_again() {
    let Some(folder) = Folder::under_git() else { return };
    for path in ["train.py", "data/big.bin", "data/small.csv", "out/deep/log.txt", "notes.txt"] {
        folder.write(path, "");
    }
    folder.write(".cohabitignore", "# what jobs do not need\ndata/*\n!data/small.csv\n/out/\n*.txt\n");
    for selection in [FileSelection::Git, FileSelection::All] {
        let code = folder.scan(selection).await;
        assert_eq!(paths(&code), [".cohabitignore", "data/small.csv", "train.py"], "{selection:?}");
    }
    folder.write(".cohabitignore", "out\na[z-a]\n");
    let refused = folder.refusal(FileSelection::All).await.to_string();
    assert!(refused.contains("/.cohabitignore:2: "), "{refused}");
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_refused_unless_it_is_left_out() {
    let folder = Folder::new();
    folder.write("a.py", "");
    let name = std::ffi::OsStr::from_bytes(b"bad\xff.py");
    fs::write(folder.path().join(name), "").unwrap();
    let refused = folder.refusal(FileSelection::All).await.to_string();
    assert!(refused.contains("bad\u{fffd}.py") && refused.contains("rename it"), "{refused}");
    folder.write(".cohabitignore", "bad*\n");
    assert_eq!(paths(&folder.scan(FileSelection::All).await), [".cohabitignore", "a.py"]);
}

#[tokio::test]
async fn a_folder_that_is_too_large_is_refused_before_it_is_read() {
    let folder = Folder::new();
    folder.write("train.py", "");
    let size = MOST_SNAPSHOT_BYTES.0;
    fs::create_dir(folder.path().join("data")).unwrap();
    for (name, size) in [("data/a.bin", size), ("data/b.bin", 3 << 20), ("c.bin", 2 << 20)] {
        fs::File::create(folder.path().join(name)).unwrap().set_len(size).unwrap();
    }
    let refused = folder.refusal(FileSelection::All).await.to_string();
    for part in [
        "has 261 MiB in 4 files, and a snapshot may have at most 256 MiB",
        "name what the job does not need in .cohabitignore, and pass data by absolute path",
        "'data/a.bin' (256 MiB), 'data/b.bin' (3 MiB), 'c.bin' (2 MiB)",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    folder.write(".cohabitignore", "data/\n");
    assert_eq!(paths(&folder.scan(FileSelection::All).await).len(), 3);
}

#[tokio::test]
async fn only_what_the_head_lacks_travels() {
    let (cluster, folder) = (Cluster::new(), Folder::new());
    let (head, client) = head(&cluster).await;
    for path in ["a.py", "b.py", "same.py"] {
        folder.write(path, &path[..1]);
    }
    folder.write("empty.py", "");
    folder.write("a-again.py", "a");
    let upload = client.upload_code(&folder.scan(FileSelection::All).await).await.unwrap();
    assert_eq!((upload.files, upload.bytes, upload.snapshot.files), (4, Bytes(3), 5));
    assert_eq!(pieces(&head), [4, 1], "the files, then the list of them");
    assert_eq!(cluster.content.missing(&[upload.snapshot.manifest]), []);

    let again = client.upload_code(&folder.scan(FileSelection::All).await).await.unwrap();
    assert_eq!((again.files, again.bytes, &again.snapshot), (0, Bytes(0), &upload.snapshot));
    assert_eq!(pieces(&head), [4, 1], "nothing");

    folder.write("b.py", "changed");
    let changed = client.upload_code(&folder.scan(FileSelection::All).await).await.unwrap();
    assert_eq!((changed.files, changed.bytes), (1, Bytes(7)));
    assert_eq!(pieces(&head), [4, 1, 1, 1]);
}

#[tokio::test]
async fn large_files_travel_in_pieces_and_a_broken_link_costs_no_more_than_one_message() {
    let mut cluster = Cluster::new();
    cluster.on_content = Arc::new(Mutex::new(|number| if number == 2 { Answer::Lost } else { Answer::Sent }));
    let (head, client) = head(&cluster).await;
    let folder = Folder::new();
    let content: Vec<u8> = (0..5 * PIECE_BYTES + 7).map(|at| (at % 251) as u8).collect();
    folder.write("weights.bin", &content);
    let code = folder.scan(FileSelection::All).await;
    let upload = client.upload_code(&code).await.unwrap();
    assert_eq!(pieces(&head), [2, 2, 2, 2, 1], "the second message twice, and the list of files");
    assert_eq!(head.connections(), 2);

    let job = JobId::new(7);
    let manifest = client.code_manifest(job, &upload.snapshot).await.unwrap();
    assert_eq!(&manifest, code.manifest());
    let (hash, _) = manifest.stored().next().unwrap();
    assert_eq!(client.code_file(job, hash).await.unwrap(), content);
}

#[tokio::test]
async fn a_file_that_changes_meanwhile_is_taken_as_it_is_then() {
    let (cluster, folder) = (Cluster::new(), Folder::new());
    let (_head, client) = head(&cluster).await;
    folder.write("a.py", "one");
    let code = folder.scan(FileSelection::All).await;
    for content in ["two", "longer than before", ""] {
        folder.write("a.py", content);
        let upload = client.upload_code(&code).await.unwrap();
        assert_eq!(upload.snapshot, folder.scan(FileSelection::All).await.snapshot());
    }
    fs::remove_file(folder.path().join("a.py")).unwrap();
    folder.write("b.py", "");
    let upload = client.upload_code(&code).await.unwrap();
    assert_eq!(upload.snapshot.files, 1);
}

#[tokio::test]
async fn a_file_that_always_changes_is_named() {
    let (mut cluster, folder) = (Cluster::new(), Folder::new());
    // Changes after its first half was sent, so that the rest does not fit.
    let size = 3 * PIECE_BYTES;
    let path = folder.path().join("log.bin");
    folder.write("log.bin", vec![0; size]);
    let changing = path.clone();
    cluster.on_content = Arc::new(Mutex::new(move |number| {
        fs::write(&changing, vec![number as u8; size]).unwrap();
        Answer::Sent
    }));
    let (_head, client) = head(&cluster).await;
    let failed = client.upload_code(&folder.scan(FileSelection::All).await).await.unwrap_err().to_string();
    assert_eq!(failed, "'log.bin' changes while the snapshot is taken: name it in .cohabitignore");
}

#[tokio::test]
async fn another_sender_of_the_same_file_is_followed() {
    let (cluster, folder) = (Cluster::new(), Folder::new());
    let (head, client) = head(&cluster).await;
    folder.write("a.py", "print(1)");
    let code = folder.scan(FileSelection::All).await;
    let (file, size) = code.manifest().stored().next().unwrap();
    let begun = cohabit_client::types::ContentPiece { file, size, offset: 0, bytes: b"pri".into() };
    cluster.content.put(&[begun]).unwrap();
    client.upload_code(&code).await.unwrap();
    let sent: Vec<Call> =
        head.calls().into_iter().filter(|call| matches!(call, Call::PutContent(_))).collect();
    assert_eq!(sent[..2], [Call::PutContent(vec![(file, 0, 8)]), Call::PutContent(vec![(file, 3, 5)])]);
}

fn submission(folder: &Folder) -> Submission {
    JobBuilder::new("python").arg("train.py").workdir(folder.path()).build().unwrap()
}

#[tokio::test]
async fn a_submission_names_what_was_uploaded_for_it() {
    let (cluster, folder) = (Cluster::new(), Folder::new());
    folder.write("train.py", "print(1)");
    let accepted = Turn::Accepted(SubmitReceipt { job: JobId::new(7), members: 1, notes: Vec::new() });
    let head = cluster.head([Turn::Refuse(refusal(RefusalCode::NotFound)), accepted]).await;
    let client = cluster.client_of(head.address);
    let code = folder.scan(FileSelection::All).await;
    let submission = submission(&folder);
    let (job, upload) = client.submit_with_code(&submission, &code).await.unwrap();
    assert_eq!((job.id(), &upload.snapshot), (JobId::new(7), &code.snapshot()));
    let submitted = submission.with_code(upload.snapshot).unwrap();
    let call = Call::Submit(Box::new(submitted.spec().clone()), Some(submitted.key().to_owned()));
    let calls: BTreeSet<_> = head.calls().iter().map(|call| format!("{call:?}")).collect();
    assert!(calls.contains(&format!("{call:?}")));
    assert_eq!(head.calls().iter().filter(|it| **it == call).count(), 2, "refused, and then accepted");
    assert_eq!(head.calls().iter().filter(|it| matches!(it, Call::MissingContent(2))).count(), 2);
}

#[tokio::test]
async fn a_job_runs_only_inside_of_its_snapshot() {
    let (folder, other) = (Folder::new(), Folder::new());
    folder.write("train.py", "");
    let snapshot = folder.scan(FileSelection::All).await.snapshot();
    let refused = submission(&other).with_code(snapshot.clone()).unwrap_err();
    assert!(matches!(&refused, Error::InvalidJob(why) if why.contains("does not lie in")), "{refused}");
    let built = JobBuilder::new("python").workdir(folder.path()).code(snapshot.clone()).build().unwrap();
    assert_eq!(built.spec().code, Some(snapshot));
}

#[tokio::test]
async fn a_program_is_a_snapshot_of_one_file_also_when_its_file_is_replaced() {
    let (cluster, folder) = (Cluster::new(), Folder::new());
    folder.write("bin/search", "the program");
    let link = folder.path().join("exe");
    symlink(folder.path().join("bin/search"), &link).unwrap();
    let code = CodeFolder::of_program(&link, "search").await.unwrap();
    let snapshot = code.snapshot();
    assert_eq!((snapshot.folder, snapshot.files), (folder.path().join("bin").display().to_string(), 1));
    assert_eq!(snapshot.bytes, Bytes(11));
    let Some(FileContent::Stored { hash, is_executable: true, .. }) = code.manifest().file("search") else {
        panic!("{code:?}")
    };
    let head = cluster.head([]).await;
    let upload = cluster.client_of(head.address).upload_code(&code).await.unwrap();
    assert_eq!((upload.files, upload.snapshot.manifest), (1, code.snapshot().manifest));
    assert_eq!(cluster.content.read(hash, 0).unwrap().bytes, b"the program");
    let missing = CodeFolder::of_program(folder.path().join("none"), "search").await;
    assert!(matches!(missing, Err(Error::Code(CodeError::Unreadable { .. }))));
}
