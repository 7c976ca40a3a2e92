//! `--nodes`: how many nodes a job gets at once, or that any will do.

use cohabit_client::proto::Spread;

/// How a job lies on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeCount {
    /// On this many, with as many devices on each.
    Exactly(u32),
    /// On any, with whatever number of devices on each.
    Any,
}

impl NodeCount {
    /// How many, where the devices are not spread freely.
    pub(crate) const fn count(self) -> u32 {
        match self {
            NodeCount::Exactly(count) => count,
            NodeCount::Any => 1,
        }
    }

    /// How its devices lie on them.
    pub(crate) const fn spread(self) -> Spread {
        match self {
            NodeCount::Exactly(_) => Spread::Even,
            NodeCount::Any => Spread::Free,
        }
    }
}

/// Reads `2` and `any`.
pub(crate) fn nodes(text: &str) -> Result<NodeCount, String> {
    if text == "any" {
        return Ok(NodeCount::Any);
    }
    let count = text.parse().ok().filter(|count| *count > 0);
    count.map(NodeCount::Exactly).ok_or_else(|| {
        format!("'{text}' is no number of nodes: write 1, 2, … or any, to let GPUs lie on whatever nodes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_or_any_is_read() {
        assert_eq!(nodes("2"), Ok(NodeCount::Exactly(2)));
        assert_eq!(nodes("any"), Ok(NodeCount::Any));
        for bad in ["", "0", "-1", "1-4", "all", "99999999999"] {
            assert!(nodes(bad).unwrap_err().contains("no number of nodes"), "{bad}");
        }
    }
}
