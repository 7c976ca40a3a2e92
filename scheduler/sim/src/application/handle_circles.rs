//! Actors that keep each other alive: the arguments of their constructors lead back to themselves, perhaps
//! through values that were not known yet. Nobody frees these before the application ends, as the guide says.

use std::collections::BTreeSet;

use cohabit_application_core::{ActorId, HeldId, ObjectId, ObjectValue};

use super::payload::decode;
use super::process::Process;
use super::world::ApplicationWorld;

impl ApplicationWorld {
    /// Whether an actor that lives keeps itself alive.
    pub(super) fn has_circle(&self) -> bool {
        let actors = self.processes.values().filter_map(|process| Some(process.live.as_ref()?.actor));
        actors.clone().any(|actor| self.kept_by(actor).contains(&actor))
    }

    /// The actors that live as long as this one does.
    fn kept_by(&self, actor: ActorId) -> BTreeSet<ActorId> {
        let (mut kept, mut open, mut seen) = (BTreeSet::new(), vec![actor], BTreeSet::new());
        while let Some(next) = open.pop() {
            let of_actor = |process: &&Process| process.live.as_ref().is_some_and(|it| it.actor == next);
            for process in self.processes.values().filter(of_actor) {
                for found in self.within(process, decode(&process.arguments).1, &mut seen) {
                    if kept.insert(found) {
                        open.push(found);
                    }
                }
            }
        }
        kept
    }

    /// The actors whose handles are among these, or in the values that a process knows of them.
    fn within(
        &self,
        process: &Process,
        mut held: Vec<HeldId>,
        seen: &mut BTreeSet<ObjectId>,
    ) -> Vec<ActorId> {
        let mut actors = Vec::new();
        while let Some(next) = held.pop() {
            match next {
                HeldId::Actor(actor) => actors.push(actor),
                HeldId::Object(object) if seen.insert(object) => match process.core.object_value(object) {
                    Some(ObjectValue::Inline(value)) => held.extend(decode(&value).1),
                    Some(ObjectValue::Stored(stored)) => {
                        let mut contents =
                            self.stores.values().filter_map(|store| store.content(stored.object));
                        held.extend(contents.next().into_iter().flat_map(|content| decode(content).1));
                    }
                    Some(ObjectValue::Failed(_)) | None => {}
                },
                HeldId::Object(_) => {}
            }
        }
        actors
    }
}
