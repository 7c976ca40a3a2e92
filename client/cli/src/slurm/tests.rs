//! What `#SBATCH` lines become, and whether they are read as the real sbatch reads them.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use super::request::Translated;
use super::*;

fn translated(lines: &[&str]) -> Translated {
    let mut request = SlurmRequest::default();
    for (number, line) in lines.iter().enumerate() {
        request.add_line(number + 1, &shlex::split(line).unwrap());
    }
    request.translate(false)
}

/// The flags without those that every job of a script for Slurm gets.
fn flags(line: &str) -> String {
    let Translated { flags, errors, .. } = translated(&[line]);
    assert_eq!(errors, [], "{line}");
    let text = flags.join(" ");
    let text = text.strip_prefix("--slurm-env").unwrap().trim_start();
    text.strip_suffix("--gpus 0 --cpus 1").unwrap_or(text).trim_end().to_owned()
}

fn warnings(line: &str) -> String {
    let Translated { warnings, errors, .. } = translated(&[line]);
    assert_eq!(errors, [], "{line}");
    warnings.into_iter().map(|remark| remark.text).collect::<Vec<_>>().join("\n")
}

#[test]
fn options_become_flags_with_the_same_meaning() {
    for (slurm, ours) in [
        ("--job-name=resnet", "--name resnet"),
        ("-J resnet", "--name resnet"),
        ("--job=resnet", "--name resnet"),
        ("--time=90", "--time 5400s"),
        ("-t 1-12", "--time 129600s"),
        ("-t02:00:00", "--time 7200s"),
        ("--time=UNLIMITED", ""),
        ("--array=1-10:2%4", "--array 1-10:2%4"),
        ("-a 1,3,5", "--array 1,3,5"),
        ("-d afterok:12:13,afterany:14_5", "--depends-on afterok:12,afterok:13,afterany:14.5"),
        ("--dependency=afternotok:9", "--depends-on afternotok:9"),
        ("--begin=now+60", "--begin now+60s"),
        ("--begin=now+2hours", "--begin now+2h"),
        ("--begin=now+1week", "--begin now+7d"),
        ("--begin=2030-11-22T08:00", "--begin 2030-11-22T08:00"),
        ("--signal=USR1@90", "--stop-signal USR1@90s"),
        ("--signal=10", "--stop-signal 10"),
        ("-D /data -H", "--workdir /data --hold"),
        ("--output=logs/%x-%4j.out -e e.txt", "--stdout logs/%x-%4j.out --stderr e.txt"),
        ("--export=NONE", "--export=NONE"),
        ("--export=ALL,A=1,B", "--export=ALL,A=1,B"),
        ("--export", "--export=ALL"),
        ("--partition=gpu,long", "--partition gpu,long"),
        ("--requeue", ""),
        ("--no-requeue", "--no-preemptible"),
        ("--mail-type=END", "--notify end"),
        ("--mail-type=begin,FAIL,TIME_LIMIT,ARRAY_TASKS", "--notify start,fail,timeout"),
        ("--mail-type=ALL", "--notify start,end,requeue"),
        ("--mail-type=NONE", ""),
    ] {
        assert_eq!(flags(slurm), ours, "{slurm}");
    }
}

#[test]
fn resources_become_what_a_node_has_to_give() {
    for (slurm, ours) in [
        ("--gres=gpu", "--gpus-per-node 1"),
        ("--gres=gpu:2 -c 8", "--gpus-per-node 2 --cpus 8"),
        ("--gres=gpu:a100:2", "--gpus-per-node 2"),
        ("--gres=gpu:0", ""),
        ("--gres=none", ""),
        ("--gpus=4 --nodes=2", "--nodes 2 --gpus 4"),
        ("--gpus-per-node=v100:2", "--gpus-per-node 2"),
        ("--gpus-per-task=2 -n 1", "--gpus-per-node 2"),
        ("-G 1 --mem=64G", "--gpus 1 --mem 64G"),
        ("--mem=4000", "--gpus 0 --cpus 1 --mem 4000M"),
        ("--mem=0 -G1", "--gpus 1"),
        ("--mem-per-cpu=2G -c 4", "--gpus 0 --cpus 4 --mem 8G"),
        ("--mem-per-cpu=512 --cpus-per-task=3 -G1", "--gpus 1 --cpus 3 --mem 1536M"),
        ("--mem-per-gpu=10G --gres=gpu:3", "--gpus-per-node 3 --mem 30G"),
        ("--cpus-per-gpu=6 --gres=gpu:2", "--gpus-per-node 2 --cpus 12"),
        ("--exclusive --gres=gpu:2", "--gpus-per-node 2 --exclusive"),
        ("--exclusive", ""),
        (
            "--ntasks-per-node=4 -N 2 --gres=gpu:4 -c 2",
            "--nodes 2 --gpus-per-node 4 --cpus 8 --launch per-gpu",
        ),
        ("--nodes=2-4 -G 2", "--nodes 2 --gpus 2"),
        (
            "-n 4 -c 2",
            "--gpus 0 --cpus 8 --env SLURM_NTASKS=4 --env SLURM_NTASKS_PER_NODE=4 --env SLURM_CPUS_PER_TASK=2",
        ),
    ] {
        assert_eq!(flags(slurm), ours, "{slurm}");
    }
}

#[test]
fn what_has_no_effect_or_another_one_is_a_warning_with_what_to_do() {
    for (slurm, advice) in [
        ("--mail-type=END,STAGE_OUT", "STAGE_OUT has no effect: Cohabit tells of start, end"),
        ("--mail-user=ada@example.org", "--notify end@CHANNEL"),
        ("--qos=high", "--qos has no effect: Cohabit has no accounts and no QOS"),
        ("-A lab", "remove it, or set --priority"),
        ("--nodelist=n[1-3]", "the scheduler chooses the nodes"),
        ("--gres=gpu:a100:2", "the type of GPU (a100)"),
        ("--gres=gpu:1,nvme:2", "nvme:2 has no effect"),
        ("--signal=B:USR1@9", "not to the shell of the script alone"),
        ("--exclusive", "whole nodes cannot be reserved"),
        ("--exclusive=user -G 1", "shares its GPUs with no other"),
        ("--no-requeue", "queued again"),
        ("--mem=0", "give an amount"),
        ("--nodes=2-4", "of the range, 2 is used"),
        ("--nodes=2", "on each of the 2 nodes"),
        ("--ntasks=4", "start the 4 tasks itself"),
        ("--ntasks-per-node=2 --gres=gpu:2", "remove srun from it"),
        ("--job-nam-x=x", "unknown: did you mean --job-name?"),
        ("--frobnicate 3 --hold", "--frobnicate has no effect, because it is unknown"),
        ("--wrap=x", "for the command line of sbatch"),
    ] {
        assert!(warnings(slurm).contains(advice), "{slurm}: {}", warnings(slurm));
    }
    assert_eq!(warnings("--gres=gpu:2 -t 1 -J x --output=a -p gpu --requeue -c 4"), "");
}

#[test]
fn malformed_values_are_errors_that_are_told_at_once() {
    let lines = [
        "--time=soon --nodes=few",
        "--mem=lots --gres=gpu:many",
        "-d singleton",
        "--dependency=after:12+5",
        "--dependency=afterok",
        "--signal=B:USR1@x",
        "--array=3-1",
        "-d afterok:1?afterok:2",
        "train.py",
        "-t",
        "--signal=USR9",
        "--hold=1",
        "--ntasks=0 --begin=now+1fortnight",
    ];
    let alone = |(number, line): (usize, &&str)| {
        let remarks = translated(&[line]).errors;
        remarks.into_iter().map(move |remark| format!("{}: {}", number + 1, remark.text))
    };
    let texts: Vec<String> = lines.iter().enumerate().flat_map(alone).collect();
    insta::assert_snapshot!(texts.join("\n"));
    let all = translated(&["--time=soon", "--qos=x", "--mem=lots"]);
    assert_eq!(all.errors.iter().map(|error| error.line).collect::<Vec<_>>(), [Some(1), Some(3)]);
    assert_eq!(all.warnings.len(), 1);
}

#[test]
fn the_last_option_decides_and_flags_of_cohabit_on_gpus_do() {
    let text = |lines: &[&str]| translated(lines).flags.join(" ");
    assert_eq!(text(&["-J a -G 1", "-J b"]), "--slurm-env --name b --gpus 1");
    let mut request = SlurmRequest::default();
    request.add_line(1, &["--job-name=a".into(), "--gres=gpu:2".into()]);
    assert_eq!(request.translate(true).flags.join(" "), "--slurm-env --name a");
}

#[test]
fn the_command_line_of_sbatch_overrides_the_script() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut typed = SlurmRequest::default();
    assert_eq!(typed.add_command_line(&words("-J b --parsable --wrap=ls run.sh -n 3")), Some(4));
    assert_eq!(typed.submission(SubmissionOption::Wrap), Some("ls"));
    assert!(typed.submission(SubmissionOption::Parsable).is_some());
    let mut request = SlurmRequest::default();
    request.add_line(2, &words("-J a -G 1"));
    request.override_with(typed);
    assert_eq!(request.translate(false).flags.join(" "), "--slurm-env --name b --gpus 1");
    let mut unknown = SlurmRequest::default();
    unknown.add_command_line(&words("--frob run.sh"));
    assert!(unknown.translate(false).errors[0].text.contains("--frob is unknown"));
}

/// The options as Debian's sbatch has read them, by its own names; none where it refused the script.
fn read_by_sbatch(line: &str) -> Option<BTreeMap<String, String>> {
    let folder = tempfile::tempdir().unwrap();
    let (script, settings) = (folder.path().join("run.sh"), folder.path().join("slurm.conf"));
    fs::write(&script, format!("#!/bin/sh\n#SBATCH {line}\ntrue\n")).unwrap();
    let lines = "ClusterName=c\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\nAuthType=auth/none\nGresTypes=gpu\n\
                 NodeName=n1 CPUs=4 Gres=gpu:4\nPartitionName=gpu Nodes=n1 Default=YES\nMessageTimeout=1\n";
    fs::write(&settings, lines).unwrap();
    let mut sbatch = Command::new("sbatch");
    sbatch.arg("--test-only").arg("-vv").arg(script).env("SLURM_CONF", settings);
    let output = sbatch.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let options = text.lines().filter_map(|line| line.strip_prefix("sbatch: ")?.split_once(" : "));
    let options: BTreeMap<String, String> =
        options.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
    (!options.is_empty()).then_some(options)
}

/// What both programs understand, and what both refuse.
#[test]
fn lines_are_read_as_the_real_sbatch_reads_them() {
    if Command::new("sbatch").arg("--version").env("SLURM_CONF", "/dev/null").output().is_err() {
        eprintln!("skipped: there is no sbatch here (Debian package slurm-client)");
        return;
    }
    for (line, name, theirs, ours) in [
        ("--job-name=re # comment", "job-name", "re", "--name re"),
        ("--job=x", "job-name", "x", "--name x"),
        ("-Jx", "job-name", "x", "--name x"),
        ("--time=1-12", "time", "1-12:00:00", "--time 129600s"),
        ("-t 90", "time", "01:30:00", "--time 5400s"),
        ("-t 5:30", "time", "00:06:00", "--time 360s"),
        ("-t 1-2:3:4", "time", "1-02:04:00", "--time 93840s"),
        ("--mem-per-cpu=2G -c 4", "mem-per-cpu", "2G", "--gpus 0 --cpus 4 --mem 8G"),
        ("--mem=4000", "mem", "4000", "--gpus 0 --cpus 1 --mem 4000M"),
        ("--array=1-10:2%4", "array", "1-10:2%4", "--array 1-10:2%4"),
        ("-d afterok:1:2", "dependency", "afterok:1:2", "--depends-on afterok:1,afterok:2"),
        ("--export=A=1,B", "export", "A=1,B", "--export=A=1,B"),
        ("--job-name='a b'", "job-name", "a b", "--name a b"),
        ("-n 4 -N 2 --gres=gpu:2", "ntasks", "4", "--nodes 2 --gpus-per-node 2 --cpus 2 --launch per-gpu"),
    ] {
        let read = read_by_sbatch(line).unwrap_or_else(|| panic!("sbatch refuses {line}"));
        assert_eq!(read.get(name).map(String::as_str), Some(theirs), "{line}: {read:?}");
        assert_eq!(flags(line), ours, "{line}");
    }
    for line in ["--time=soon", "--nodes=few", "--mem=lots", "--ntasks=0", "-t", "--signal=USR9"] {
        assert_eq!(read_by_sbatch(line), None, "{line}");
        assert_eq!(translated(&[line]).errors.len(), 1, "{line}");
    }
}
