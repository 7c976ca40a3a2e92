//! Lost objects that this process has made again: how it tells of the tasks that made them, and calls them.

use cohabit_types::RankId;

use crate::dependents::Callee;
use crate::errors::CallError;
use crate::frames::ToCoordinator;
use crate::held::HeldId;
use crate::ids::{CallNumber, NodeNumber, ObjectId, Ticket};
use crate::lineage::Lineage;
use crate::member::Member;
use crate::member_effect::MemberEffect;
use crate::object_frames::ToDirectory;
use crate::object_value::CallValue;
use crate::queued_task::QueuedTask;
use crate::remake_call::RemakeCall;
use crate::task_class::{OnTaskError, TaskClass, TaskSpec};

impl Member {
    /// The name under which the value of a running task is to be stored, whatever its size: the task makes a
    /// lost object again. The maker in the name is another process.
    #[must_use]
    pub fn store_as(&self, ticket: Ticket) -> Option<ObjectId> {
        self.task_gate.store_as(ticket)
    }

    /// A task of this process has ended. Tells the coordinator how its value is made again, if a node has it
    /// that can be lost.
    pub(crate) fn tell_lineage(
        &mut self,
        class: &TaskClass,
        result: &Result<CallValue, CallError>,
        task: &QueuedTask,
        effects: &mut Vec<MemberEffect>,
    ) {
        let Ok(CallValue::Stored(stored)) = result else { return };
        let can_be_lost = stored.home != NodeNumber::COORDINATOR;
        if !can_be_lost || task.retries == 0 || task.store_as.is_some() || task.stream.is_some() {
            return;
        }
        let lineage = Box::new(Lineage {
            class: class.clone(),
            function: task.function,
            arguments: task.arguments.clone(),
            needs: task.needs.clone(),
            carries: self.carry_all(&task.carries, effects),
            retries: task.retries,
        });
        effects.push(to_directory(ToDirectory::Made { object: stored.object, lineage }));
    }

    /// The coordinator has a lost object made again.
    pub(crate) fn remake(
        &mut self,
        object: ObjectId,
        remake: u32,
        lineage: Lineage,
        effects: &mut Vec<MemberEffect>,
    ) {
        let Lineage { class, function, arguments, needs, carries, retries } = lineage;
        let carries = self.accept_all(carries, self.coordinator, effects);
        let missing = match self.missing(&needs) {
            Ok(missing) => missing,
            Err(error) => {
                effects.push(to_directory(ToDirectory::NotRemade { object, remake, error }));
                return carries.into_iter().for_each(|held| self.release(held, effects));
            }
        };
        let (caller, on_error) = (None, OnTaskError::Fail);
        let spec = TaskSpec { class, function, caller, retries, on_error, arguments, needs, carries };
        let call = self.next_call();
        self.remakes.insert(call, RemakeCall { object, remake });
        if missing.is_empty() {
            let spread = self.spread(&spec.needs);
            let changes = self.task_calls.push_remake(call, object, spec, spread);
            self.carry_out_tasks(Some(changes), effects);
        } else {
            self.dependents.add(call, Callee::Task, missing);
            self.task_calls.hold_back_remake(call, object, spec);
            self.update_all_needs(effects);
        }
    }

    /// Whether a call that has ended was to make a lost object again: then nobody waits for its value here.
    pub(crate) fn end_remake(
        &mut self,
        call: CallNumber,
        runner: Option<RankId>,
        result: &Result<CallValue, CallError>,
        carries: &[HeldId],
        effects: &mut Vec<MemberEffect>,
    ) -> bool {
        let Some(RemakeCall { object, remake }) = self.remakes.remove(&call) else { return false };
        self.dependents.forget(call);
        let error = match result {
            Ok(CallValue::Stored(stored)) if stored.object == object => None,
            Ok(CallValue::Stored(_) | CallValue::Inline(_)) => {
                Some(CallError::Refused("its runner did not store the value again".to_owned()))
            }
            Err(error) => Some(error.clone()),
        };
        effects.push(to_directory(match (runner, error) {
            (Some(runner), None) => ToDirectory::Remade { object, remake, runner },
            (_, error) => {
                let nobody = || CallError::Refused("no runner has answered".to_owned());
                ToDirectory::NotRemade { object, remake, error: error.unwrap_or_else(nobody) }
            }
        }));
        carries.iter().for_each(|held| self.release(*held, effects));
        true
    }
}

const fn to_directory(report: ToDirectory) -> MemberEffect {
    MemberEffect::ToCoordinator(ToCoordinator::Object(report))
}
