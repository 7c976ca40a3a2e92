//! `sinfo`: lists nodes by state, with Slurm's default columns.

use std::collections::BTreeMap;
use std::process::ExitCode;

use cohabit_client::types::{NodeRecord, NodeState, Share};
use cohabit_console::{CommandError, output, printable_line};

use super::words::{connection, has, options, usage};
use crate::endpoint::connect;
use crate::slurm::{OptionName, ValueUse};
use cohabit_console::natural_key;

const OPTIONS: [OptionName; 3] = [
    OptionName { short: Some('h'), long: "noheader", value: ValueUse::Never },
    OptionName { short: Some('N'), long: "Node", value: ValueUse::Never },
    OptionName { short: Some('a'), long: "all", value: ValueUse::Never },
];

/// There are no partitions, and so one, which is the default.
const PARTITION: &str = "cohabit*";

pub(super) async fn sinfo(words: &[String]) -> Result<ExitCode, CommandError> {
    let instead = "`cohabit nodes`, with --output json for other columns";
    let (given, rest) = options(words, &OPTIONS, instead)?;
    if let Some(word) = rest.first() {
        return Err(usage(format!("Unrecognized argument: {word}")));
    }
    let client = connect(&connection()).await?;
    let mut nodes = client.nodes().await?;
    nodes.sort_by_cached_key(|node| natural_key(&node.name));
    let has_heading = !has(&given, "noheader");
    let text = if has(&given, "Node") { by_node(&nodes, has_heading) } else { by_state(&nodes, has_heading) };
    output::print_text(text.trim_end_matches('\n'))?;
    Ok(ExitCode::SUCCESS)
}

fn by_state(nodes: &[NodeRecord], has_heading: bool) -> String {
    let mut groups: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for node in nodes {
        groups.entry(state(node)).or_default().push(printable_line(&node.name).into_owned());
    }
    let line = |[partition, avail, limit, count, state, list]: [&str; 6]| {
        format!("{partition:<9} {avail:>5} {limit:>10} {count:>6} {state:>6} {list}\n")
    };
    let mut text = String::new();
    if has_heading {
        text += &line(["PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST"]);
    }
    for (state, names) in groups {
        text += &line([PARTITION, "up", "infinite", &names.len().to_string(), state, &names.join(",")]);
    }
    text
}

fn by_node(nodes: &[NodeRecord], has_heading: bool) -> String {
    let names: Vec<String> = nodes.iter().map(|node| printable_line(&node.name).into_owned()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("NODELIST".len());
    let line = |[name, partition, state]: [&str; 3], count: &str| {
        format!("{name:<width$} {count:>6} {partition:>9} {state}\n")
    };
    let mut text = String::new();
    if has_heading {
        text += &line(["NODELIST", "PARTITION", "STATE"], "NODES");
    }
    for (name, node) in names.iter().zip(nodes) {
        text += &line([name, PARTITION, state(node)], "1");
    }
    text
}

/// Slurm's word for the state, and for how much of the node's devices is taken.
fn state(node: &NodeRecord) -> &'static str {
    match node.state {
        NodeState::Unreachable | NodeState::Lost => "down*",
        NodeState::Draining => "drng",
        NodeState::Drained | NodeState::Paused => "drain",
        NodeState::Up if node.jobs.is_empty() => "idle",
        NodeState::Up if node.devices.iter().all(|device| device.used >= Share::WHOLE) => "alloc",
        NodeState::Up => "mix",
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::JobId;

    use super::*;
    use crate::render::samples::nodes;

    #[test]
    fn nodes_are_counted_by_state() {
        let of = |name: &str, state, jobs: &[u64]| NodeRecord {
            name: name.into(),
            state,
            jobs: jobs.iter().map(|job| JobId::new(*job)).collect(),
            ..nodes().remove(0)
        };
        let found = [
            of("gpu1", NodeState::Up, &[]),
            of("gpu2", NodeState::Up, &[1]),
            of("gpu3", NodeState::Lost, &[]),
            of("gpu10", NodeState::Up, &[]),
        ];
        insta::assert_snapshot!(by_state(&found, true) + &by_node(&found, true));
        assert!(!by_state(&found, false).contains("PARTITION"));
    }
}
