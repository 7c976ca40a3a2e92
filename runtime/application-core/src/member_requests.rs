//! What a process asks the coordinator about actors.

use crate::actor_spec::ActorSpec;
use crate::errors::CreateError;
use crate::frames::ToCoordinator;
use crate::held::HeldId;
use crate::ids::{ActorId, RequestNumber};
use crate::limits::MAX_NAME;
use crate::member::Member;
use crate::member_effect::MemberEffect;

impl Member {
    /// Asks for an actor; the answer is `Created`.
    ///
    /// # Errors
    ///
    /// If the description of the actor breaks a limit.
    pub fn create(
        &mut self,
        spec: ActorSpec,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<RequestNumber, CreateError> {
        spec.check()?;
        if let Some(unknown) = carries.iter().find(|held| !self.holds.is_held(**held)) {
            return Err(CreateError::UnknownHandle(*unknown));
        }
        let request = self.next_request();
        for held in &carries {
            self.holds.add(*held);
        }
        let carried = self.carry_all(&carries, effects);
        self.creating.insert(request, carries);
        let frame = ToCoordinator::Create { request, spec, carries: carried };
        effects.push(MemberEffect::ToCoordinator(frame));
        Ok(request)
    }

    /// Looks up a name; the answer is `Found`.
    ///
    /// # Errors
    ///
    /// If no actor can have the name.
    pub fn find(
        &mut self,
        name: String,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<RequestNumber, CreateError> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(CreateError::NameLength { bytes: name.len() });
        }
        let request = self.next_request();
        effects.push(MemberEffect::ToCoordinator(ToCoordinator::Find { request, name }));
        Ok(request)
    }

    /// Stops an actor; the answer is `Stopped`.
    pub fn stop(&mut self, actor: ActorId, effects: &mut Vec<MemberEffect>) -> RequestNumber {
        let request = self.next_request();
        effects.push(MemberEffect::ToCoordinator(ToCoordinator::Stop { request, actor }));
        request
    }
}
