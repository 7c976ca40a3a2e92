//! Giving back what was taken restores everything.

use cohabit_types::{Bytes, Demand};
use proptest::prelude::*;

use super::kit::*;
use crate::{FirstFit, FreeNodes, NodeView, Placer, Profile};

proptest! {
    #[test]
    fn giving_back_undoes_taking(
        free in prop::collection::vec(prop::collection::vec(0_u32..=1_000, 0..5), 0..4),
        takers in prop::collection::vec((0_usize..3, 1_u32..4, 0_u32..3, 0_u64..20), 0..6),
    ) {
        let nodes: Vec<NodeView> =
            (0..).zip(&free).map(|(number, free)| node(number, free)).collect();
        let mut room = FreeNodes::new(&nodes);
        let mut taken = Vec::new();
        for (kind, count, cpus, memory) in takers {
            let demand = [gpus(count), anywhere(count), part(count * 200)][kind];
            let demand = Demand { cpus, memory: Bytes(memory << 30), ..demand };
            let job = job(1, demand);
            let profile = Profile::flat(&demand, &job.traits);
            if let Ok(proposal) = FirstFit.place(&job, &profile, &room) {
                room.take(&demand, &proposal.placement);
                taken.push((demand, proposal.placement));
            }
        }
        for (demand, placement) in taken.iter().rev() {
            room.give_back(demand, placement);
        }
        prop_assert_eq!(room.nodes().cloned().collect::<Vec<_>>(), nodes.clone());
        for (position, node) in nodes.iter().enumerate() {
            prop_assert_eq!(room.position(node.id), Some(position));
            prop_assert_eq!(room.node(position), node);
        }
    }
}
