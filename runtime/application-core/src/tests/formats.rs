//! Frames survive the encoding of the wire, and errors say what to do.

use super::kit::{actor, carried, member, named, write};
use crate::{
    ActorEnd, CallError, CallNumber, CreateError, FromCoordinator, Lifetime, ObjectId, Packet, RequestNumber,
    StoreReply, StoreRequest, ToCallee, ToCoordinator,
};

#[test]
fn frames_come_back_from_bincode_as_they_were() {
    let (request, gang) = (RequestNumber(4), named("ada", Lifetime::Detached));
    let create = ToCoordinator::Create { request, gang, carries: vec![vec![carried(5)]] };
    let packet = Packet::Frame { number: 1, received: 9, frame: create };
    let bytes = bincode::serialize(&packet).unwrap();
    assert_eq!(bincode::deserialize::<Packet<ToCoordinator>>(&bytes).unwrap(), packet);

    let (call, request) = (CallNumber(2), write());
    let call = ToCallee::Call { actor: actor(1), call, request, carries: vec![carried(5)] };
    let bytes = bincode::serialize(&call).unwrap();
    assert_eq!(bincode::deserialize::<ToCallee>(&bytes).unwrap(), call);

    let object = ObjectId { maker: member(3), number: 7 };
    let reserve = StoreRequest::Reserve { object, bytes: 1 << 40 };
    let bytes = bincode::serialize(&reserve).unwrap();
    assert_eq!(bincode::deserialize::<StoreRequest>(&bytes).unwrap(), reserve);

    let refused = StoreReply::Refused { object, error: CallError::StoreFull("it is full".to_owned()) };
    let bytes = bincode::serialize(&refused).unwrap();
    assert_eq!(bincode::deserialize::<StoreReply>(&bytes).unwrap(), refused);

    let result = Err(CreateError::NameInUse { name: "ada".to_owned() });
    let created = FromCoordinator::Created { request: RequestNumber(4), result };
    let bytes = bincode::serialize(&created).unwrap();
    assert_eq!(bincode::deserialize::<FromCoordinator>(&bytes).unwrap(), created);
}

#[test]
fn errors_say_what_to_do() {
    let texts = [
        CallError::Restarted.to_string(),
        CallError::Ended(ActorEnd::GivenUp("its process ended with 137".to_owned())).to_string(),
        CallError::Full.to_string(),
        CreateError::DetachedWithoutName.to_string(),
    ];
    assert_eq!(
        texts,
        [
            "the process of the actor ended during the call; whether the method ran is unknown: make it safe to run \
             twice and mark it #[retry]",
            "the actor was given up: its process ended with 137",
            "1000 calls of this process to the actor have not ended: await some of them before the next call",
            "a detached actor needs a name, or nobody can find it again: add .name(\"...\")",
        ]
    );
}
