//! The commands in the groups in which the help lists them, and examples of each.
//!
//! `clap` lists commands in one column; the help of `cohabit` itself is a template made from [`GROUPS`]. Only
//! a command line that asks for help pays for this: see [`help_command`].

use clap::{Command, CommandFactory as _};

use super::CommandLine;

/// A group of commands: its heading, and their names in order.
type CommandGroup = (&'static str, &'static [&'static str]);

/// Every command that the help lists, in its order. A build without a feature leaves out its commands.
const GROUPS: &[CommandGroup] = &[
    (
        "Common commands",
        &[
            "demo", "up", "run", "submit", "sweep", "shell", "notebook", "list", "last", "show", "logs",
            "explain", "wait", "cancel", "cp", "top", "nodes", "share", "report", "web",
        ],
    ),
    (
        "Advanced commands for jobs",
        &["attach", "exec", "forward", "history", "hold", "release", "requeue", "update", "metrics", "code"],
    ),
    ("Advanced commands for applications", &["applications", "actors", "tasks", "objects"]),
    (
        "Advanced commands for clusters",
        &["head", "worker", "reserve", "service", "export", "notify", "token", "models", "doctor"],
    ),
    ("Advanced commands for research", &["simulate", "policy", "predict", "profile"]),
    ("Advanced commands for shells and scripts", &["completions", "slurm-shims"]),
];

/// Examples of each command, by its path.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("", &["cohabit up", "cohabit run --gpus 0.5 -- python train.py", "cohabit top"]),
    ("demo", &["cohabit demo"]),
    ("up", &["cohabit up", "cohabit up --state ./try --devices host:2 --listen 127.0.0.1:0"]),
    (
        "run",
        &[
            "cohabit run --gpus 0.5 --gpu-mem 20G -- python train.py",
            "cohabit run --gpus 0 --time 10m ./tests.sh",
            "cohabit run --pty -- htop",
        ],
    ),
    (
        "submit",
        &[
            "cohabit submit --gpus 0.5 --gpu-mem 20G -- python train.py --lr 0.1",
            "cohabit submit --gpus 8 --nodes 2 --time 4h -- torchrun --nproc-per-node 4 train.py",
            "cohabit submit --array 1-100%4 --name sweep --snapshot ./member.sh",
        ],
    ),
    (
        "sweep",
        &[
            "cohabit sweep --grid lr=0.1,0.01 --grid seed=1..3 -- python train.py --lr {lr} --seed {seed}",
            "cohabit sweep --random lr=log:1e-5..1e-1 --samples 20 -- python train.py --lr {lr}",
            "cohabit sweep sweep.toml --gpus 0.5 -- python train.py --lr {lr}",
        ],
    ),
    ("sweep show", &["cohabit sweep show", "cohabit sweep show 12 --sort loss --output csv"]),
    ("sweep resume", &["cohabit sweep resume last"]),
    ("shell", &["cohabit shell --gpus 0.5 --time 8h", "cohabit shell --gpus 1 -- python -i train.py"]),
    (
        "notebook",
        &[
            "cohabit notebook --gpus 0.5 --time 8h",
            "cohabit notebook --python ~/env/bin/python -- --notebook-dir=work",
            "cohabit notebook --attach last",
        ],
    ),
    ("attach", &["cohabit attach 12", "cohabit attach last"]),
    ("exec", &["cohabit exec 12 -- nvidia-smi", "cohabit exec 12 --rank 1 --pty -- bash"]),
    (
        "cp",
        &[
            "cohabit cp 12:out/model.pt .",
            "cohabit cp -r last:out ./results",
            "cohabit cp 12:log.csv - | head",
        ],
    ),
    ("forward", &["cohabit forward 12 8888", "cohabit forward last 0:6006 --rank 1"]),
    ("list", &["cohabit list", "cohabit list --all --user ada --state failed"]),
    ("last", &["cohabit last", "cohabit last --output json"]),
    ("history", &["cohabit history", "cohabit history --since 7d --limit 100"]),
    ("show", &["cohabit show 12", "cohabit show --output json last"]),
    ("logs", &["cohabit logs -f last", "cohabit logs --tail 20 12", "cohabit logs 12.3 --rank 1"]),
    ("explain", &["cohabit explain last", "cohabit explain train"]),
    ("wait", &["cohabit wait 12 13"]),
    (
        "cancel",
        &["cohabit cancel 12", "cohabit cancel --state PENDING --name sweep", "cohabit cancel --force 13"],
    ),
    ("top", &["cohabit top"]),
    ("nodes", &["cohabit nodes", "cohabit nodes --output json"]),
    ("share", &["cohabit share", "cohabit share --output json"]),
    (
        "reserve",
        &[
            "cohabit reserve --maintenance --nodes gpu1 --from '2026-12-01 18:00' --for 4h",
            "cohabit reserve --project vision --nodes gpu3 --from 08:00 --for 2d",
        ],
    ),
    ("reserve list", &["cohabit reserve list", "cohabit reserve list --output json"]),
    ("reserve cancel", &["cohabit reserve cancel 3"]),
    ("share apply", &["cohabit share apply share.toml --dry-run", "cohabit share apply share.toml"]),
    (
        "report",
        &[
            "cohabit report --by project,user --last 30d",
            "cohabit report --since 2026-11-01 --until 2026-11-30 --output csv",
        ],
    ),
    ("report job", &["cohabit report job 12", "cohabit report job last --output json"]),
    ("report idle", &["cohabit report idle"]),
    ("web", &["cohabit web", "cohabit web --listen 127.0.0.1:8080"]),
    ("hold", &["cohabit hold 14", "cohabit hold --name sweep"]),
    ("release", &["cohabit release 14", "cohabit release --all"]),
    ("requeue", &["cohabit requeue 12", "cohabit requeue --state FAILED --name sweep"]),
    ("update", &["cohabit update 14 --time 8h --priority -1", "cohabit update 14 --begin now+1h"]),
    ("metrics", &["cohabit metrics last --plot", "cohabit metrics 12 --csv --metric loss"]),
    ("code", &["cohabit code 12 --stat", "cohabit code 12 --extract ./there"]),
    ("applications", &["cohabit applications", "cohabit applications --user ada"]),
    ("actors", &["cohabit actors search"]),
    ("tasks", &["cohabit tasks search", "cohabit tasks search --tail 20"]),
    ("objects", &["cohabit objects search"]),
    ("head", &["cohabit head start"]),
    ("head start", &["cohabit head start", "cohabit head start --listen 0.0.0.0:7070 --policy fifo"]),
    (
        "head backup",
        &[
            "cohabit head backup /backup/head.tar",
            "cohabit head backup --state /var/lib/cohabit --force /backup/head.tar",
        ],
    ),
    ("head restore", &["cohabit head restore /backup/head.tar --state /var/lib/cohabit"]),
    ("head recover", &["cohabit head recover --state /var/lib/cohabit"]),
    ("worker", &["cohabit worker start --join head:7070 --token-file worker.token"]),
    (
        "worker start",
        &[
            "cohabit worker start --join head:7070 --token-file worker.token",
            "cohabit worker start --join head:7070 --token-file worker.token --devices host:2",
        ],
    ),
    (
        "worker drain",
        &[
            "cohabit worker drain gpu1 --reason 'new disk' --deadline 2h",
            "cohabit worker drain gpu1 --by 18:00",
        ],
    ),
    ("worker resume", &["cohabit worker resume gpu1"]),
    ("worker unbind", &["cohabit worker unbind gpu1"]),
    (
        "export",
        &[
            "cohabit export",
            "cohabit export --listen 127.0.0.1:9470 --scrape-token-file /etc/cohabit/scrape.token",
        ],
    ),
    (
        "notify",
        &[
            "cohabit notify --config notify.toml --check",
            "cohabit notify --config notify.toml --test mail",
            "cohabit notify --config notify.toml",
        ],
    ),
    ("service", &["cohabit service install head"]),
    (
        "service install",
        &[
            "cohabit service install head -- --listen 0.0.0.0:7070",
            "cohabit service install worker -- --join head:7070 --token-file /etc/cohabit/worker.token",
        ],
    ),
    ("token", &["cohabit token create --role user --name ada --expires 30d"]),
    ("token create", &["cohabit token create --role user --name ada --expires 30d"]),
    ("token list", &["cohabit token list"]),
    ("token revoke", &["cohabit token revoke ada"]),
    ("models", &["cohabit models", "cohabit models use auto"]),
    ("models use", &["cohabit models use 3", "cohabit models use auto"]),
    ("doctor", &["cohabit doctor", "cohabit doctor --cluster"]),
    (
        "simulate",
        &["cohabit simulate --trace synthetic:600 --cluster 16x8:V100@25g --policy fifo,easy-backfill"],
    ),
    ("policy", &["cohabit policy train --trace synthetic:200 --cluster 8x4:V100@25g --out agents"]),
    ("policy train", &["cohabit policy train --trace synthetic:200 --cluster 8x4:V100@25g --out agents"]),
    ("policy show", &["cohabit policy show agents"]),
    ("predict", &["cohabit predict train --model low-rank --data h200.csv --out model"]),
    ("predict train", &["cohabit predict train --model low-rank --data h200.csv --out model"]),
    ("predict eval", &["cohabit predict eval --weights model --data h200.csv"]),
    ("predict show", &["cohabit predict show model"]),
    ("profile", &["cohabit profile --workloads zoo.toml --out h200.csv"]),
    ("completions", &["cohabit completions bash"]),
    ("slurm-shims", &["cohabit slurm-shims --dir ~/bin"]),
];

/// The command line with all texts of its help, for a screen of this width.
pub(crate) fn help_command(width: usize) -> Command {
    let mut command = CommandLine::command().term_width(width);
    command.build();
    for (path, examples) in EXAMPLES {
        add_examples(&mut command, path, examples);
    }
    let template = template(&command, width);
    for submission in ["submit", "run", "shell", "notebook"] {
        if let Some(found) = command.find_subcommand_mut(submission) {
            *found = std::mem::take(found)
                .mut_arg("help", |help| help.help_heading(cohabit_job_arguments::COMMON));
        }
    }
    command.help_template(template)
}

/// Puts examples behind the help of a command, if this build has it.
fn add_examples(command: &mut Command, path: &str, examples: &[&str]) {
    let mut found = command;
    for name in path.split_whitespace() {
        let Some(next) = found.find_subcommand_mut(name) else { return };
        found = next;
    }
    let lines: String = examples.iter().map(|example| format!("\n  {example}")).collect();
    let before = found.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    *found = std::mem::take(found).after_help(format!("{before}Examples:{lines}"));
}

/// The help of `cohabit` with its commands in groups.
fn template(command: &Command, width: usize) -> String {
    let names = command.get_subcommands().map(|it| it.get_name().len());
    let column = names.max().unwrap_or_default() + 4;
    let header = *command.get_styles().get_header();
    let groups = GROUPS.iter().filter_map(|(heading, names)| {
        let listed: String = names
            .iter()
            .filter_map(|name| Some(command_line(command.find_subcommand(name)?, column, width)))
            .collect();
        (!listed.is_empty()).then(|| format!("{header}{heading}:{header:#}\n{listed}\n"))
    });
    let groups = groups.collect::<String>();
    format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    )
}

/// `  list  List jobs …`, in lines of at most this width.
fn command_line(command: &Command, column: usize, width: usize) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    let aliases =
        if aliases.is_empty() { String::new() } else { format!(" [aliases: {}]", aliases.join(", ")) };
    let mut text = format!("  {:<1$}", command.get_name(), column - 2);
    let mut used = column;
    for word in (about + &aliases).split_whitespace() {
        if used > column && used + 1 + word.len() > width {
            text += &format!("\n{:column$}", "");
            used = column;
        } else if used > column {
            text.push(' ');
            used += 1;
        }
        text += word;
        used += word.len();
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser as _;

    use super::*;

    /// All visible commands below one, with their paths.
    fn commands(command: &Command, path: &str) -> Vec<(String, Command)> {
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
        let mut found = Vec::new();
        for child in visible {
            let path = format!("{path} {}", child.get_name()).trim().to_owned();
            found.push((path.clone(), child.clone()));
            found.extend(commands(child, &path));
        }
        found
    }

    #[test]
    fn each_command_is_in_exactly_one_group() {
        let command = help_command(100);
        let visible: BTreeSet<&str> =
            command.get_subcommands().filter(|it| !it.is_hide_set()).map(Command::get_name).collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(
            BTreeSet::from_iter(listed.iter().copied()).len(),
            listed.len(),
            "a command is in two groups"
        );
        // All features together have all commands.
        if cfg!(all(feature = "demo", feature = "simulate", feature = "predict", feature = "worker")) {
            assert_eq!(BTreeSet::from_iter(listed), visible);
        } else {
            assert!(visible.is_subset(&BTreeSet::from_iter(listed)));
        }
    }

    #[test]
    fn the_help_of_each_command_ends_in_examples_that_parse() {
        let command = help_command(100);
        let all = commands(&command, "");
        for (path, mut found) in all.into_iter().chain([(String::new(), command)]) {
            let help = found.render_long_help().to_string();
            let (_, examples) =
                help.rsplit_once("Examples:\n").unwrap_or_else(|| panic!("{path} has no examples"));
            let examples: Vec<&str> = examples.trim_end().lines().map(str::trim).collect();
            assert!((1..=3).contains(&examples.len()), "{path}: {examples:?}");
            for example in examples {
                let words = shlex::split(example).unwrap();
                if let Err(error) = CommandLine::try_parse_from(&words) {
                    panic!("{example}: {error}");
                }
                assert!(
                    example.starts_with(format!("cohabit {path}").trim_end()),
                    "{example} is no example of {path}"
                );
            }
        }
    }

    #[test]
    fn examples_are_of_commands_that_exist() {
        let command = help_command(100);
        if cfg!(all(feature = "demo", feature = "simulate", feature = "predict", feature = "worker")) {
            let known: BTreeSet<String> = commands(&command, "").into_iter().map(|(path, _)| path).collect();
            for (path, _) in EXAMPLES {
                assert!(path.is_empty() || known.contains(*path), "there is no command {path}");
            }
        }
    }

    #[test]
    fn lines_of_the_list_fit_the_width() {
        for width in [60, 80, 100] {
            let help = help_command(width).render_help().to_string();
            let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > width).collect();
            assert!(long.is_empty(), "{long:?}");
        }
    }
}
