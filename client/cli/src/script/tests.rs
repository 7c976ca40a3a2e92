//! Directives in scripts: `#COHABIT`, `#SBATCH` and unknown ones.

use super::*;

fn script(text: &str) -> Script {
    Script { path: "train.sh".into(), text: text.to_owned() }
}

fn flags(text: &str) -> Vec<String> {
    script(text).directives(false).unwrap().flags
}

fn refusal(line: &str) -> String {
    script(&format!("#!/bin/sh\n\n{line}\n")).directives(false).unwrap_err().message
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
    let script = script("#!/bin/sh\necho\n#COHABIT --gpus 9\n#SBATCHING\n#SBATCH -t 9\n");
    assert_eq!(script.directives(false), Ok(Directives::default()));
    assert_eq!(script.late_directives(), [3, 5]);
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
fn lines_of_slurm_come_before_those_of_cohabit_which_override_them() {
    let text = "#!/bin/sh\n#COHABIT --gpus 0.5 --name b\n#SBATCH --gres=gpu:2\n#SBATCH -J a -c 2\n";
    let expected = "--slurm-env --name a --cpus 2 --gpus 0.5 --name b";
    assert_eq!(flags(text).join(" "), expected);
    assert!(flags("#!/bin/sh\n#SBATCH -J a\n").join(" ").ends_with("--gpus 0 --cpus 1"));
    let typed = script("#!/bin/sh\n#SBATCH -J a\n").directives(true).unwrap().flags;
    assert_eq!(typed.join(" "), "--slurm-env --name a");
}

#[test]
fn warnings_and_errors_name_all_their_lines() {
    let text = "#!/bin/sh\n#SBATCH --qos=high\n#SBATCH -J a\n#SBATCH --mail-user=ada --frob 3\n";
    let warnings = script(text).directives(false).unwrap().warnings;
    let lines: Vec<&str> = warnings.iter().filter_map(|warning| warning.split(": ").next()).collect();
    assert_eq!(lines, ["train.sh:2", "train.sh:4", "train.sh:4"]);
    let bad = "#!/bin/sh\n#COHABIT --frob\n#SBATCH --time=soon --mem=x\n#SBATCH 'open\n#COHABIT --gpus 1.5\n";
    insta::assert_snapshot!(script(bad).directives(false).unwrap_err().message);
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
