//! The walk of a student: the quick start of the README, then the commands for jobs and Slurm scripts in
//! docs/OPERATIONS.md.

use std::fs;
use std::process::Command;

use crate::document::{Section, root};
use crate::kit::{Walk, python, until};

/// Numbers of jobs in blocks that submit them: the first job is the first of these, and so on.
const EXAMPLES: [&str; 4] = ["12", "13", "14", "15"];

/// A training that reports its steps as the README shows. A second attempt goes on until it is stopped, as a
/// real training would.
fn training(snippet: &str) -> String {
    let reports: String = snippet.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "import os, time\n\
         steps = 20\n\
         for step in range(1, steps + 1):\n    loss = 1 / step\n{reports}\
         print(\"trained\", flush=True)\n\
         while os.environ[\"COHABIT_ATTEMPT\"] != \"1\":\n    time.sleep(0.1)\n"
    )
}

/// The files of a student, in a work tree of git, and the programs that are installed.
fn prepare(walk: &Walk, jobs: &Section, train: &str) {
    let element = jobs.block_with("--from-json");
    let (_, sweep) = element.split_once("# ").expect("the block shows what is in sweep.json");
    let entries = sweep.lines().next().unwrap();
    for (name, text) in [
        ("train.py", train),
        ("evaluate.py", train),
        ("sweep.py", train),
        ("convert.sh", "#!/bin/sh\necho \"converted $1\"\n"),
        ("member.sh", "#!/bin/sh\necho \"rate $LR\"\n"),
        ("files.txt", "one.png\n\ntwo.png\nthree.png\n"),
        ("train.sh", "#!/bin/sh\n#SBATCH --job-name=scripted --time=10\npython train.py\n"),
        ("sweep.json", entries),
        ("resnet.toml", &jobs.block_with("batch-size =")),
        (".gitignore", "ignored\n"),
        ("ignored", "data\n"),
    ] {
        walk.write(name, text);
    }
    let slices = "examples/scripts/slices.py";
    walk.write(slices, &fs::read_to_string(root().join(slices)).unwrap());
    let mut git = Command::new("git");
    assert!(git.args(["init", "-q"]).current_dir(walk.path("")).status().unwrap().success());
    // A launcher of ranks, of which Cohabit starts one on each node.
    walk.write("torchrun", "#!/bin/sh\nfor last; do :; done\nexec python \"$last\"\n");
    walk.install("torchrun", &walk.path("torchrun"));
}

/// Runs a block. Its example numbers become the numbers of the jobs that it submits.
#[track_caller]
fn block(walk: &mut Walk, commands: &[String], mut before: impl FnMut(&mut Walk, &str)) {
    let mut examples = EXAMPLES.iter();
    let mut used = Vec::new();
    for command in commands {
        before(walk, command);
        walk.step(command);
        let submits = ["cohabit submit", "sbatch"].iter().any(|begin| command.starts_with(begin));
        if !submits || command.contains("--dry-run") {
            continue;
        }
        let example = *examples.next().expect("another example number");
        let is_example = |word: &str| word.split([',', ':']).any(|part| part == example);
        if commands.iter().any(|line| line.split_whitespace().any(is_example)) {
            let job = walk.job(command);
            walk.substitute(example, &job);
            used.push(example);
        }
    }
    for example in used {
        walk.end_substitution(example);
    }
}

fn nothing(_: &mut Walk, _: &str) {}

/// The README: one machine, and a training that reports its steps.
fn quick_start(walk: &mut Walk) {
    let section = Section::of("README.md", "## Quick start: one machine");
    let [daemon, jobs, simulation]: [Vec<String>; 3] = section.commands().try_into().unwrap();
    walk.steps(daemon);
    walk.steps(jobs);
    let run = walk.ran("cohabit run");
    assert_eq!(run.stdout, "trained\n", "`run` follows the output");
    section.says("submit, follow, exit with the job's code");
    walk.try_command("cohabit run -- sh -c 'exit 3'").ends_with(3, "FAILED");
    let (lines, sweep) = (walk.job("cohabit submit --each-line"), walk.job("cohabit submit --array"));
    for name in ["train ", "convert.sh ", "scripted "] {
        walk.ran("cohabit list").prints(name);
    }
    walk.ok(&format!("cohabit wait {lines}"));
    let mut converted: Vec<String> =
        walk.ok(&format!("cohabit logs {lines}")).lines().map(str::to_owned).collect();
    converted.sort();
    let member = |index: usize, name: &str| format!("[{lines}.{index}] converted {name}.png");
    assert_eq!(converted, [member(0, "one"), member(1, "two"), member(2, "three")]);
    section.says("of an array, too: the lines of all members, merged");
    let followed = &walk.ran("cohabit logs -f last").stdout;
    assert_eq!(followed.lines().filter(|line| line.ends_with("] trained")).count(), 20, "{followed}");
    walk.ran("cohabit explain last").prints(&format!("Array {sweep}: 20 of 20 members have ended"));
    // As many jobs as a build without optimization replays in seconds.
    walk.substitute("synthetic:2000", "synthetic:100");
    walk.steps(simulation);
    for policy in ["fifo", "easy-backfill", "a-srpt"] {
        walk.ran("cohabit simulate").prints(policy);
    }
    assert!(walk.read("report.html").contains("</html>"));

    let training = Section::of("README.md", "## From your training script");
    training.says("`cohabit metrics last --plot` shows the loss over the steps");
    walk.ok("cohabit submit --output quiet -- python train.py | xargs cohabit wait");
    walk.steps(training.commands_in_prose("cohabit "));
    walk.ran("cohabit metrics last --plot").prints("loss");
}

/// A second node of four slots, as gangs need it.
fn second_node(walk: &mut Walk) {
    let token = walk.root().join("var/lib/cohabit/worker.token");
    let head = walk.address();
    walk.go_to("second");
    let join = format!("--join {head} --token-file {}", token.display());
    walk.step(&format!("cohabit worker start {join} --devices host:4"));
    walk.go_to("laptop");
}

/// The first block of the section: submission, waiting, and changes.
fn submit_and_change(walk: &mut Walk, section: &Section, commands: &[String]) {
    block(walk, commands, |walk, command| {
        if command.starts_with("cohabit cancel --force") {
            // It has been queued again, and runs until it is stopped.
            let base = walk.job("cohabit submit --name base");
            until("the job runs again", || walk.shown(&base, "state") == "RUNNING");
        }
    });
    walk.ran("cohabit submit --dry-run").prints("Nothing was submitted");
    let quiet = walk.ran("cohabit submit --output quiet");
    assert_eq!(format!("{}\n", quiet.job().unwrap()), quiet.stdout, "--output quiet prints the number alone");
    let base = walk.job("cohabit submit --name base");
    let evaluation = walk.job("cohabit submit --depends-on");
    walk.ran("cohabit update").prints("priority -1, time limit 8 h 0 min");
    walk.ran("cohabit logs --tail").prints("trained");
    walk.ran("cohabit logs -f").prints("] rate 0.1");
    walk.ran("cohabit logs -f").prints(&format!("[{base}] trained"));
    section.says("If no job matches, the command says so and exits with 0");
    walk.ran("cohabit cancel --state PENDING").ends_with(0, "no job matches");
    section.says("the job ends as CANCELLED, and `show` and `explain` say that it was forced");
    walk.ok(&format!("cohabit wait {base} || true"));
    assert_eq!(walk.shown(&base, "state"), "CANCELLED");
    assert!(walk.ok(&format!("cohabit explain {base}")).contains("cancelled by force"));
    assert_eq!(walk.shown(&evaluation, "state"), "CANCELLED");
    section.says("A job that ended by itself can be queued again but not cancelled: `cancel` says so and exits with 65");
    let members = walk.job("cohabit submit --array 0-99%8");
    walk.try_command(&format!("cohabit cancel {members}")).ends_with(65, "cannot cancel");
}

fn arrays_and_code(walk: &mut Walk, section: &Section, arrays: &[String], code: &[String]) {
    block(walk, arrays, nothing);
    section.says("Members have the indices from 0 on, as with HyperQueue; blank lines are left out");
    let listed = walk.ran("cohabit list --members-of");
    let entries: Vec<&str> =
        listed.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(entries, ["one.png", "two.png", "three.png"]);
    section.says("Keys of JSON objects are columns of `list --members-of`");
    let sweep = walk.job("cohabit submit --from-json");
    let table = walk.ok(&format!("cohabit list --members-of {sweep}"));
    assert!(table.lines().next().unwrap().ends_with("lr   seed"), "{table}");

    let train = walk.read("train.py");
    block(walk, code, |walk, command| {
        if command.starts_with("cohabit code 12  ") {
            walk.write("train.py", &format!("{train}# edited\n"));
        }
    });
    walk.ran("cohabit code 12  ").prints("+# edited");
    walk.ran("cohabit code 12 --stat").prints("train.py");
    assert_eq!(walk.read("DIR/train.py"), train, "the files as they were");
    assert!(!walk.path("DIR/ignored").exists(), "what git ignores is not in it");
    let all = walk.job("cohabit submit --snapshot=all");
    walk.ok(&format!("cohabit code {all} --extract all"));
    assert_eq!(walk.read("all/ignored"), "data\n", "all files of the working directory");
}

fn slices_metrics_and_gangs(walk: &mut Walk, section: &Section, blocks: [Vec<String>; 3]) {
    let [slices, metrics, gangs] = blocks;
    // As after `pip install ./client/python`: jobs get the variable of the shell that submits them.
    walk.set("PYTHONPATH", &root().join("client/python/python").display().to_string());
    walk.steps(slices);
    let sliced = walk.job("cohabit submit --time 4h --requeue-on-timeout");
    until("it reports steps", || walk.ok(&format!("cohabit show {sliced}")).contains("loss"));
    section.says("`cohabit cancel` ends such a job");
    walk.ok(&format!("cohabit cancel {sliced}"));
    walk.ok(&format!("cohabit wait {sliced} || true"));
    assert_eq!(walk.shown(&sliced, "state"), "CANCELLED");

    let base = walk.job("cohabit submit --name base");
    for (example, job) in [("12", base), ("13", sliced), ("20", walk.job("cohabit submit --array 1-20%4"))] {
        walk.substitute(example, &job);
    }
    walk.steps(metrics);
    for example in ["12", "13", "20"] {
        walk.end_substitution(example);
    }
    section.says("of all members of an array: job, attempt, step, time, a column for each metric");
    let table = walk.read("sweep.csv");
    assert!(table.starts_with("job,attempt,step,time,loss\n"), "{table}");
    assert_eq!(table.lines().count(), 1 + 20 * 20, "each line that a job writes is kept");

    walk.steps(gangs);
    section.says("starts a rank for each GPU");
    for (begin, ranks) in
        [("--nodes 2 --gpus 8 --launch", 8), ("--nodes any", 8), ("--nodes 2 --gpus 8 -- t", 2)]
    {
        let job = walk.job(&format!("cohabit submit {begin}"));
        walk.ok(&format!("cohabit wait {job}"));
        let shown = walk.json(&format!("cohabit show {job}"));
        let started = shown["attempts"][0]["ranks"].as_array().unwrap();
        assert_eq!(started.len(), ranks, "{begin}: {shown}");
    }
    section
        .says("124 time limit; 125 could not be started; 126 not executable; 127 not found; 130 cancelled");
    walk.write("plain", "no program\n");
    walk.try_command("cohabit run --time 1s -- sleep 600").ends_with(124, "TIMEOUT");
    walk.try_command("cohabit run -- ./plain").ends_with(126, "FAILED");
    walk.try_command("cohabit run -- no-such-program").ends_with(127, "FAILED");
    walk.try_command("cohabit run -- sh -c 'kill -USR1 $$'").ends_with(128 + 10, "FAILED");
}

fn slurm(walk: &mut Walk) {
    let section = Section::of("docs/OPERATIONS.md", "## Slurm scripts");
    for commands in section.commands() {
        walk.steps(commands);
    }
    let scripted = walk.job("cohabit submit train.sh              #");
    walk.ok(&format!("cohabit wait {scripted}"));
    let shown = walk.json(&format!("cohabit show {scripted}"));
    section.says("**A script without any of them gets no GPU**");
    assert_eq!((&shown["name"], shown["devices"].as_array().unwrap().len()), (&"scripted".into(), 0));
    let array = walk.job("sbatch --array");
    walk.ok(&format!("cohabit wait {array}"));
    section.says("the program `sbatch` below writes `slurm-%j.out`");
    for index in 1..=10 {
        assert_eq!(walk.read(&format!("slurm-{array}_{index}.out")), "trained\n");
    }
    section.says("`squeue -u -j -n -p -t -h -r --me`");
    assert_eq!(walk.ok("squeue --me -h -t R"), "", "nothing runs any more");
}

#[test]
fn a_student_runs_jobs_as_the_documents_show() {
    let Some(python) = python() else { return };
    let mut walk = Walk::new("laptop", &[("cargo build", "the program is there, and in PATH")]);
    walk.install("python", &python);
    let section = Section::of("docs/OPERATIONS.md", "## Jobs");
    let snippet = Section::of("README.md", "## From your training script").block_with("COHABIT_PROGRESS");
    prepare(&walk, &section, &training(&snippet));
    quick_start(&mut walk);
    second_node(&mut walk);
    let [first, arrays, code, input, slices, metrics, gangs]: [Vec<String>; 7] =
        section.commands().try_into().expect("the section has its blocks");
    submit_and_change(&mut walk, &section, &first);
    arrays_and_code(&mut walk, &section, &arrays, &code);
    block(&mut walk, &input, nothing);
    assert_eq!(walk.ran("cohabit run -- wc").stdout, "4\n", "the job reads the file");
    slices_metrics_and_gangs(&mut walk, &section, [slices, metrics, gangs]);
    slurm(&mut walk);
    walk.finish();
}
