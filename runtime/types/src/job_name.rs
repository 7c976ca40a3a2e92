//! The name of a job: the one that a command gives it, and what no name may contain.
//!
//! The name comes from the script or module that is run, not from the interpreter or launcher in front of it.
//! Where the command leaves that open, it is the name of the program.

/// Suffixes of scripts that a name leaves out.
const SCRIPT_SUFFIXES: [&str; 10] = [".py", ".pyc", ".sh", ".bash", ".zsh", ".R", ".r", ".jl", ".pl", ".rb"];

/// Programs that run the script which is their first argument; with options before it, it is not searched.
const INTERPRETERS: [&str; 5] = ["Rscript", "julia", "perl", "ruby", "fish"];

/// Shells whose options are known.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

/// Modules of Python that are launchers.
const LAUNCHER_MODULES: [(&str, &str); 4] = [
    ("torch.distributed.run", "torchrun"),
    ("torch.distributed.launch", "torchrun"),
    ("accelerate.commands.launch", "accelerate-launch"),
    ("deepspeed.launcher.runner", "deepspeed"),
];

/// A program that runs another one or a script, and its options.
struct Launcher {
    /// The program and, of some, the subcommand.
    words: &'static [&'static str],
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options with a value in the next word, unless it follows an equals sign.
    valued: &'static [&'static str],
    runs: LaunchedProgram,
}

/// What a launcher runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LaunchedProgram {
    /// A command.
    Command,
    /// A script of Python, or a module after `-m`.
    Python,
    /// A script of Python if it ends like one, a module after `-m`, or else a command.
    PythonOrCommand,
}

const LAUNCHERS: [Launcher; 17] = [
    plain(&["nohup"]),
    plain(&["time"]),
    plain(&["poetry", "run"]),
    plain(&["pipenv", "run"]),
    plain(&["pdm", "run"]),
    conda(&["conda", "run"]),
    conda(&["mamba", "run"]),
    conda(&["micromamba", "run"]),
    Launcher { valued: &["-n", "--adjustment"], ..plain(&["nice"]) },
    Launcher { flags: &["--oversubscribe", "--bind-to-none"], valued: &["-n", "-np"], ..plain(&["mpirun"]) },
    Launcher { valued: &["-n", "-np"], ..plain(&["mpiexec"]) },
    UV,
    TORCHRUN,
    accelerate(&["accelerate", "launch"]),
    accelerate(&["accelerate-launch"]),
    Launcher {
        flags: &["--no_python", "--no_local_rank", "--force_multi"],
        valued: &["-H", "--hostfile", "-i", "--include", "-e", "--exclude", "--num_nodes", "--num_gpus"],
        runs: LaunchedProgram::Python,
        words: &["deepspeed"],
    },
    Launcher {
        flags: &["-i", "--ignore-environment", "-"],
        valued: &["-u", "--unset", "-C", "--chdir"],
        ..plain(&["env"])
    },
];

const UV: Launcher = Launcher {
    words: &["uv", "run"],
    flags: &[
        "--frozen",
        "--locked",
        "--no-sync",
        "--no-project",
        "--isolated",
        "--offline",
        "-q",
        "--quiet",
        "-s",
    ],
    valued: &["--with", "-p", "--python", "--project", "--directory", "--extra", "--group", "--env-file"],
    runs: LaunchedProgram::PythonOrCommand,
};

const TORCHRUN: Launcher = Launcher {
    words: &["torchrun"],
    flags: &["--standalone", "--no-python", "--no_python", "--run-path", "--run_path"],
    valued: &[
        "--nnodes",
        "--nproc-per-node",
        "--nproc_per_node",
        "--node-rank",
        "--node_rank",
        "--master-addr",
        "--master_addr",
        "--master-port",
        "--master_port",
        "--rdzv-backend",
        "--rdzv_backend",
        "--rdzv-endpoint",
        "--rdzv_endpoint",
        "--rdzv-id",
        "--rdzv_id",
        "--max-restarts",
        "--max_restarts",
        "--log-dir",
        "--log_dir",
    ],
    runs: LaunchedProgram::Python,
};

/// Without options.
const fn plain(words: &'static [&'static str]) -> Launcher {
    Launcher { words, flags: &[], valued: &[], runs: LaunchedProgram::Command }
}

const fn conda(words: &'static [&'static str]) -> Launcher {
    Launcher {
        words,
        flags: &["--no-capture-output", "--live-stream", "-v"],
        valued: &["-n", "--name", "-p", "--prefix", "--cwd"],
        runs: LaunchedProgram::Command,
    }
}

const fn accelerate(words: &'static [&'static str]) -> Launcher {
    Launcher {
        words,
        flags: &["--multi_gpu", "--cpu", "--use_deepspeed", "--use_fsdp", "--debug", "-q", "--quiet"],
        valued: &[
            "--config_file",
            "--num_processes",
            "--num_machines",
            "--machine_rank",
            "--main_process_ip",
            "--main_process_port",
            "--mixed_precision",
            "--gpu_ids",
        ],
        runs: LaunchedProgram::Python,
    }
}

/// What a part of a command says about the name.
enum NameSource<'a> {
    Script(&'a str),
    Module(&'a str, &'a [String]),
    /// The rest is a command of its own.
    Command(&'a [String]),
    /// The program itself.
    Program,
}

/// The name of a job that runs this command; empty only if the command is.
pub(crate) fn default_name(argv: &[String]) -> String {
    let Some(program) = argv.first() else { return String::new() };
    let mut command = argv;
    // Each turn leaves at least one word behind.
    loop {
        let found = match command.split_first() {
            Some((program, arguments)) => source_of(base_name(program), arguments),
            None => NameSource::Program,
        };
        match found {
            NameSource::Command(rest) => command = rest,
            NameSource::Script(script) => return printable(stem(script), program),
            NameSource::Module(module, _) => return printable(module, program),
            NameSource::Program => return printable(command.first().map_or("", |it| base_name(it)), program),
        }
    }
}

/// Refuses a name that is empty or would break a line.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err(
            "the name of the job is empty: give it one, or leave --name out for that of the command".into()
        );
    }
    match name.chars().find(|letter| breaks_lines(*letter)) {
        None => Ok(()),
        Some(letter) => Err(format!(
            "the name of the job, '{}', contains the control character '{}': give it a name in one line",
            name.escape_debug(),
            letter.escape_default()
        )),
    }
}

fn breaks_lines(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// The name, or that of the program, without what no name may contain.
fn printable(name: &str, program: &str) -> String {
    let name = [name, base_name(program), "job"].into_iter().find(|name| !name.trim().is_empty());
    name.unwrap_or_default().replace(breaks_lines, "_")
}

fn source_of<'a>(program: &str, arguments: &'a [String]) -> NameSource<'a> {
    if is_python(program) {
        let found = python(arguments);
        if let NameSource::Module(module, rest) = found {
            return launched_by_module(module, rest);
        }
        return found;
    }
    if SHELLS.contains(&program) {
        return shell(arguments);
    }
    if INTERPRETERS.contains(&program) {
        return match arguments.first() {
            Some(script) if !script.starts_with('-') => NameSource::Script(script),
            Some(_) | None => NameSource::Program,
        };
    }
    match LAUNCHERS.iter().find(|it| it.is(program, arguments)) {
        Some(launcher) => launcher.source(&arguments[launcher.words.len() - 1..]),
        None => NameSource::Program,
    }
}

fn launched_by_module<'a>(module: &'a str, arguments: &'a [String]) -> NameSource<'a> {
    let program = LAUNCHER_MODULES.iter().find(|(name, _)| *name == module).map(|(_, program)| *program);
    let launcher = program.and_then(|program| LAUNCHERS.iter().find(|it| it.words == [program]));
    match launcher.map(|it| it.source(arguments)) {
        None | Some(NameSource::Program) => NameSource::Module(module, arguments),
        Some(found) => found,
    }
}

impl Launcher {
    fn is(&self, program: &str, arguments: &[String]) -> bool {
        let subcommands = &self.words[1..];
        self.words[0] == program
            && arguments.len() >= subcommands.len()
            && arguments.iter().zip(subcommands).all(|(argument, word)| argument == word)
    }

    fn source<'a>(&self, arguments: &'a [String]) -> NameSource<'a> {
        let mut words = arguments;
        while let Some((word, rest)) = words.split_first() {
            let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
            words = match () {
                () if self.sets_variable(word) || self.flags.contains(&word.as_str()) => rest,
                () if word == "--" => return self.launched(rest),
                () if !word.starts_with('-') => return self.launched(words),
                () if self.runs_modules() && matches!(word.as_str(), "-m" | "--module") => {
                    return rest
                        .split_first()
                        .map_or(NameSource::Program, |(module, rest)| NameSource::Module(module, rest));
                }
                () if self.valued.contains(&option) && option != word => rest,
                () if self.valued.contains(&option) => rest.get(1..).unwrap_or_default(),
                // Whether a value follows is not known, but no value ends like a script.
                () if self.runs_modules() => {
                    let script = rest.iter().find(|word| is_python_script(word));
                    return script.map_or(NameSource::Program, |script| NameSource::Script(script));
                }
                () => return NameSource::Program,
            };
        }
        NameSource::Program
    }

    fn launched<'a>(&self, words: &'a [String]) -> NameSource<'a> {
        let Some(first) = words.first() else { return NameSource::Program };
        match self.runs {
            LaunchedProgram::Python => NameSource::Script(first),
            LaunchedProgram::PythonOrCommand if is_python_script(first) => NameSource::Script(first),
            LaunchedProgram::Command | LaunchedProgram::PythonOrCommand => NameSource::Command(words),
        }
    }

    /// Whether `-m` names a module.
    fn runs_modules(&self) -> bool {
        self.runs != LaunchedProgram::Command
    }

    fn sets_variable(&self, word: &str) -> bool {
        self.words == ["env"] && !word.starts_with('-') && word.contains('=')
    }
}

/// The script or module that Python runs with these arguments.
fn python(arguments: &[String]) -> NameSource<'_> {
    let mut words = arguments;
    while let Some((word, rest)) = words.split_first() {
        let Some(letters) = word.strip_prefix('-') else { return NameSource::Script(word) };
        if letters.is_empty() || letters.starts_with('-') {
            return NameSource::Program;
        }
        // One-letter options share a word; the rest of it, or the next word, is the value of the last.
        let valued = letters.find(['c', 'm', 'W', 'X']).map(|at| letters.split_at(at));
        words = match valued.map(|(_, value)| value.split_at(1)) {
            None => rest,
            Some(("m", "")) => {
                return rest
                    .split_first()
                    .map_or(NameSource::Program, |(module, rest)| NameSource::Module(module, rest));
            }
            Some(("m", module)) => return NameSource::Module(module, rest),
            Some(("c", _)) => return NameSource::Program,
            Some((_, "")) => rest.get(1..).unwrap_or_default(),
            Some((_, _)) => rest,
        };
    }
    NameSource::Program
}

/// The script that a shell runs with these arguments.
fn shell(arguments: &[String]) -> NameSource<'_> {
    let mut words = arguments;
    while let Some((word, rest)) = words.split_first() {
        let Some(letters) = word.strip_prefix(['-', '+']) else { return NameSource::Script(word) };
        let is_long = letters.is_empty() || letters.starts_with('-');
        if is_long || letters.contains(['c', 's']) {
            return NameSource::Program;
        }
        words = if letters.ends_with(['o', 'O']) { rest.get(1..).unwrap_or_default() } else { rest };
    }
    NameSource::Program
}

/// `python`, `python3`, `python3.12`, `pypy3`
fn is_python(program: &str) -> bool {
    let version = program.strip_prefix("python").or_else(|| program.strip_prefix("pypy"));
    version.is_some_and(|version| version.chars().all(|letter| letter.is_ascii_digit() || letter == '.'))
}

fn is_python_script(word: &str) -> bool {
    !word.starts_with('-') && word.ends_with(".py")
}

fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}

/// The file name of a script without its suffix; empty for a directory that has no name of its own.
fn stem(script: &str) -> &str {
    let name = base_name(script);
    let stem = SCRIPT_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(if matches!(name, "." | "..") { "" } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands, and the names that they give.
    const NAMES: [(&str, &str); 58] = [
        ("", ""),
        ("python train.py", "train"),
        ("python3 -u -m pkg.train --lr 1", "pkg.train"),
        ("/opt/venv/bin/python3.12 /home/ada/net/train.py --m x.py", "train"),
        ("python -um train", "train"),
        ("python -mtrain", "train"),
        ("python -W ignore -X dev -O eval.py", "eval"),
        ("python -Wignore eval.py", "eval"),
        ("python -c print(1) train.py", "python"),
        ("python3 -uc print(1)", "python3"),
        ("python - train.py", "python"),
        ("python --version", "python"),
        ("python", "python"),
        ("python -m", "python"),
        ("python .", "python"),
        ("pythonic train.py", "pythonic"),
        ("python -m torch.distributed.run --nproc-per-node 2 train.py", "train"),
        ("python -m torch.distributed.launch", "torch.distributed.launch"),
        ("bash run.sh", "run"),
        ("bash -euo pipefail run.sh 1", "run"),
        ("bash -x jobs/run-v1.2", "run-v1.2"),
        ("sh -c sleep", "sh"),
        ("bash -lc train.py", "bash"),
        ("bash --rcfile x run.sh", "bash"),
        ("sh", "sh"),
        ("Rscript fit.R", "fit"),
        ("julia --project=. fit.jl", "julia"),
        ("torchrun --nproc-per-node 2 train.py", "train"),
        ("torchrun --nproc-per-node=2 --standalone train.py a.py", "train"),
        ("torchrun --nnodes 2 -m pkg.train", "pkg.train"),
        ("torchrun --new-option 2 train.py a.py", "train"),
        ("torchrun --new-option 2 train", "torchrun"),
        ("torchrun", "torchrun"),
        ("torchrun --nnodes", "torchrun"),
        ("uv run train.py", "train"),
        ("uv run --with torch python -m train", "train"),
        ("uv run torchrun --nnodes 1 train.py", "train"),
        ("uv run pytest", "pytest"),
        ("uv sync", "uv"),
        ("accelerate launch train.py", "train"),
        ("accelerate launch --num_processes 2 --multi_gpu train.py", "train"),
        ("accelerate test", "accelerate"),
        ("deepspeed --num_gpus 2 train.py", "train"),
        ("conda run -n env python train.py", "train"),
        ("conda run --no-capture-output --name=env ./a.out x", "a.out"),
        ("conda run --unknown env python train.py", "conda"),
        ("env A=1 python train.py", "train"),
        ("env -u B -i A=1 B=2 bash run.sh", "run"),
        ("env -S python", "env"),
        ("env A=1", "env"),
        ("nohup nice -n 5 mpirun -np 2 python train.py", "train"),
        ("time -- python train.py", "train"),
        ("./a.out", "a.out"),
        ("./train.sh 1", "train.sh"),
        ("/bin/sleep 1", "sleep"),
        ("bin/", "bin"),
        ("/", "job"),
        ("torchrun .py", ".py"),
    ];

    #[test]
    fn a_job_is_named_after_the_script_or_module_that_runs() {
        for (command, name) in NAMES {
            let argv: Vec<String> = command.split_whitespace().map(Into::into).collect();
            assert_eq!(default_name(&argv), name, "{command}");
        }
    }

    #[test]
    fn a_default_name_is_always_allowed() {
        for script in ["a\nb.py", " ", "", "\u{1b}[2J.py", "\u{2028}"] {
            let name = default_name(&["python".into(), script.into()]);
            assert_eq!(check_name(&name), Ok(()), "{script:?} gave {name:?}");
        }
        assert_eq!(default_name(&["python".into(), "a\nb.py".into()]), "a_b");
        let many = vec!["env".to_owned(); 1_000_000];
        assert_eq!(default_name(&many), "env");
    }

    #[test]
    fn a_name_in_several_lines_is_refused() {
        for name in ["a", "größe 7", "\u{202e}x"] {
            assert_eq!(check_name(name), Ok(()));
        }
        for name in ["a\nb", "a\tb", "\u{1b}]0;x", "a\u{85}", "a\u{2028}b"] {
            assert!(check_name(name).unwrap_err().contains("control character"), "{name:?}");
        }
        assert_eq!(
            check_name("a\nb").unwrap_err(),
            "the name of the job, 'a\\nb', contains the control character '\\n': give it a name in one line"
        );
        for name in ["", "  "] {
            assert!(check_name(name).unwrap_err().contains("is empty"), "{name:?}");
        }
    }
}
