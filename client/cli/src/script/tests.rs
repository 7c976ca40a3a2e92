//! Directives in scripts: `#COHABIT`, `#SBATCH` and unknown ones.

use super::*;

fn script(text: &str) -> Script {
    Script { path: "train.sh".into(), text: text.to_owned() }
}

fn flags(text: &str) -> Vec<String> {
    script(text).flags().unwrap()
}

fn refusal(line: &str) -> String {
    script(&format!("#!/bin/sh\n\n{line}\n")).flags().unwrap_err().message
}

#[test]
fn directives_are_flags_in_order() {
    let text = "#!/bin/bash\n# a remark\n#COHABIT --gpus 0.5 --name 'my run' # why\n\n#COHABIT --time 2h\nexec train\n";
    assert_eq!(flags(text), ["--gpus", "0.5", "--name", "my run", "--time", "2h"]);
}

#[test]
fn directives_accept_all_flags_of_sharing() {
    let text =
        "#!/bin/sh\n#COHABIT --gpus 0.5 --gpu-mem 8G --enforced\n#COHABIT --cap-compute --gpu-processes 2\n";
    let expected = "--gpus 0.5 --gpu-mem 8G --enforced --cap-compute --gpu-processes 2";
    assert_eq!(flags(text).join(" "), expected);
}

#[test]
fn directives_after_the_first_command_are_not_read_but_reported() {
    let script = script("#!/bin/sh\necho\n#COHABIT --gpus 9\n");
    assert_eq!(script.flags().unwrap(), Vec::<String>::new());
    assert_eq!(script.late_directives(), [3]);
}

#[test]
fn a_comment_that_only_starts_like_a_directive_is_ignored() {
    assert_eq!(flags("#!/bin/sh\n#COHABITATION is fine\n##SBATCH --gres=gpu:2\n"), Vec::<String>::new());
}

#[test]
fn the_error_of_an_unknown_flag_names_file_line_and_closest_flag() {
    let message = refusal("#COHABIT --gpu 1 --exclusiv");
    insta::assert_snapshot!(
        message,
        @"train.sh:3: unexpected argument '--gpu' found; tip: a similar argument exists: '--gpus'"
    );
}

#[test]
fn the_error_of_a_wrong_value_names_its_line() {
    insta::assert_snapshot!(
        refusal("#COHABIT --gpus 1.5"),
        @"train.sh:3: invalid value '1.5' for '--gpus <COUNT>': 1.5 GPUs are not possible: a job gets whole GPUs or a share of one; ask for 0.5, 1 or 2"
    );
    assert!(refusal("#COHABIT train.py").starts_with("train.sh:3: unexpected argument 'train.py'"));
    assert!(refusal("#COHABIT --name 'x").contains("quotation mark"));
    assert!(refusal("#COHABIT --wait").contains("--wait"));
}

#[test]
fn common_options_of_slurm_are_translated() {
    let cases = [
        ("--job-name=resnet", "--name resnet"),
        ("-J resnet", "--name resnet"),
        ("--time=90", "--time 5400s"),
        ("-t 1-12", "--time 129600s"),
        ("-t02:00:00", "--time 7200s"),
        ("--mem=4000", "--mem 4000M"),
        ("--mem=64G", "--mem 64G"),
        ("--gres=gpu:2 -c 8", "--gpus-per-node 2 --cpus 8"),
        ("--gres=gpu", "--gpus-per-node 1"),
        ("--gpus=4 --nodes=2", "--gpus 4 --nodes 2"),
        ("--array=0-15:4%2", "--array 0-15:4%2"),
        ("-d afterok:12:13,afterany:14", "--depends-on afterok:12,afterok:13,afterany:14"),
        ("--begin=now+60", "--begin now+60s"),
        ("--signal=USR1@90", "--stop-signal USR1@90s"),
        ("-n 1 --hold", "--hold"),
    ];
    for (slurm, ours) in cases {
        assert_eq!(flags(&format!("#!/bin/sh\n#SBATCH {slurm}\n")).join(" "), ours, "{slurm}");
    }
}

#[test]
fn unsupported_options_of_slurm_are_errors_with_advice() {
    for (option, advice) in [
        ("--output=x.log", "cohabit logs"),
        ("--partition=gpu", "no partitions"),
        ("--exclusive", "#COHABIT --exclusive"),
        ("--gres=gpu:v100:2", "without a type"),
        ("--ntasks=4", "per-gpu"),
        ("--nodes=1-4", "not a number"),
        ("--mem=0", "whole node"),
        ("--job-nam=x", "did you mean --job-name"),
        ("-t", "needs a value"),
        ("--time=soon", "not a time of Slurm"),
        ("-d singleton", "afterok:ID"),
        ("--signal=B:USR1@9", "remove 'B:'"),
        ("train.py", "not an option of sbatch"),
        ("-", "not an option of sbatch"),
    ] {
        let message = refusal(&format!("#SBATCH {option}"));
        assert!(message.starts_with("train.sh:3: ") && message.contains(advice), "{option}: {message}");
    }
}

#[test]
fn only_text_files_that_start_with_an_interpreter_are_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        Script::at(&path).unwrap().is_some()
    };
    assert!(at("script", b"#!/bin/sh\necho\n"));
    assert!(!at("program", b"\x7fELF"));
    assert!(!at("packed", b"#!/bin/sh\nexit\n\0\xff"));
    assert_eq!(Script::at(folder.path()).unwrap(), None);
    assert_eq!(Script::at(Path::new("/nonexistent")).unwrap(), None);
}
