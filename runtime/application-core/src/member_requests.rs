//! What a process asks the coordinator about actors.

use crate::actor_spec::GangSpec;
use crate::creation::Creation;
use crate::errors::CreateError;
use crate::frames::ToCoordinator;
use crate::held::HeldId;
use crate::ids::{ActorId, RequestNumber};
use crate::limits::MAX_NAME;
use crate::member::Member;
use crate::member_effect::MemberEffect;

impl Member {
    /// Asks for actors; the answer is `Created`. `carries` are the handles in the arguments of each, by rank.
    ///
    /// # Errors
    ///
    /// If their description breaks a limit.
    pub fn create(
        &mut self,
        gang: GangSpec,
        carries: Vec<Vec<HeldId>>,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<RequestNumber, CreateError> {
        gang.check()?;
        if let Some(unknown) = carries.iter().flatten().find(|held| !self.holds.is_held(**held)) {
            return Err(CreateError::UnknownHandle(*unknown));
        }
        let request = self.next_request();
        carries.iter().flatten().for_each(|held| _ = self.holds.add(*held));
        let carried = carries.iter().map(|it| self.carry_all(it, effects)).collect();
        let (actors, carries) = (gang.actors.len() as u32, carries.into_iter().flatten().collect());
        self.creating.insert(request, Creation { actors, carries });
        let frame = ToCoordinator::Create { request, gang, carries: carried };
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
