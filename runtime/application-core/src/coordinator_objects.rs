//! What members tell the coordinator of objects.

use cohabit_types::AttemptId;

use crate::coordinator::Coordinator;
use crate::coordinator_effect::CoordinatorEffect;
use crate::directory::Holding;
use crate::held::HeldId;
use crate::object_frames::ToDirectory;

impl Coordinator {
    /// A member has said something about an object.
    pub(crate) fn received_object(
        &mut self,
        from: AttemptId,
        report: ToDirectory,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let holding = match report {
            ToDirectory::Share { object, value } => {
                self.lend(HeldId::Object(object), from);
                self.directory.share(object, from, value, effects)
            }
            ToDirectory::Resolve { object, value } => self.directory.resolve(object, value, effects),
            ToDirectory::Watch { object, lender } => {
                // What the coordinator lends may have come to it before what its maker says of it.
                let lender = if lender == self.own { object.maker } else { lender };
                self.directory.watch(object, from, lender, &self.members, effects)
            }
            ToDirectory::Stored { stored, carries } => {
                self.lend(HeldId::Object(stored.object), from);
                self.directory.stored(stored, carries, effects)
            }
            ToDirectory::Open { request, object } => {
                self.directory.open(object, (from, request), &self.members, effects)
            }
        };
        self.account(holding);
    }

    fn account(&mut self, Holding { taken, lent }: Holding) {
        let own = self.own;
        taken.into_iter().for_each(|held| self.lend(held, own));
        lent.into_iter().for_each(|(to, held)| self.lend(held, to));
    }
}
