//! `--nodes`: the number of nodes, or `any`.

use cohabit_client::types::Spread;

/// How a job is spread over nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeCount {
    /// This many nodes with the same number of devices on each.
    Exactly(u32),
    /// Any nodes, with any number of devices on each.
    Any,
}

impl NodeCount {
    /// The number of nodes; 1 where any will do.
    pub const fn count(self) -> u32 {
        match self {
            NodeCount::Exactly(count) => count,
            NodeCount::Any => 1,
        }
    }

    /// How the devices are spread over the nodes.
    pub const fn spread(self) -> Spread {
        match self {
            NodeCount::Exactly(_) => Spread::Even,
            NodeCount::Any => Spread::Free,
        }
    }
}

/// Parses `2` and `any`.
pub fn parse_nodes(text: &str) -> Result<NodeCount, String> {
    if text == "any" {
        return Ok(NodeCount::Any);
    }
    let count = text.parse().ok().filter(|count| *count > 0);
    count
        .map(NodeCount::Exactly)
        .ok_or_else(|| format!("'{text}' is not a number of nodes: write 1, 2, … or any (GPUs on any nodes)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_or_any_is_parsed() {
        assert_eq!(parse_nodes("2"), Ok(NodeCount::Exactly(2)));
        assert_eq!(parse_nodes("any"), Ok(NodeCount::Any));
        for bad in ["", "0", "-1", "1-4", "all", "99999999999"] {
            assert!(parse_nodes(bad).unwrap_err().contains("not a number of nodes"), "{bad}");
        }
    }
}
