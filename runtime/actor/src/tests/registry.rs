//! Names come and go with their actors.

use super::kit::{Diary, LONG, Say, hire, never, settle};
use crate::{ActorSystem, Address, ChildSpec, Registry, RegistryError, mailbox};

fn unknown(name: &str) -> RegistryError {
    RegistryError::Unknown { name: name.to_string() }
}

#[tokio::test(start_paused = true)]
async fn a_name_lasts_over_restarts_and_ends_with_the_actor() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", ChildSpec::new("ada", 4));
    let registry = system.registry().clone();
    registry.register("clerk", &scribe).unwrap();
    scribe.tell(Say::Fail).await.unwrap();
    let found: Address<Say> = registry.lookup("clerk").unwrap();
    assert_eq!(found.ask(Say::Name).await, Ok("ada"));
    system.shutdown(LONG).await.unwrap();
    assert_eq!(registry.lookup::<Say>("clerk").unwrap_err(), unknown("clerk"));
    assert_eq!(registry.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_name_belongs_to_one_living_actor() {
    let registry = Registry::default();
    let (first, first_mailbox) = mailbox::<u32>(1);
    let (second, mut second_mailbox) = mailbox::<u32>(1);
    registry.register("clerk", &first).unwrap();
    let taken = RegistryError::Taken { name: "clerk".to_string() };
    assert_eq!(registry.register("clerk", &second), Err(taken));
    drop(first_mailbox);
    registry.register("clerk", &second).unwrap();
    settle().await;
    registry.lookup::<u32>("clerk").unwrap().tell(7).await.unwrap();
    assert_eq!(second_mailbox.receive().await, Some(7), "the end of the first did not take the name away");
}

#[tokio::test(start_paused = true)]
async fn an_address_of_another_type_is_not_handed_out() {
    let registry = Registry::default();
    let (address, _mailbox) = mailbox::<u32>(1);
    registry.register("clerk", &address).unwrap();
    let other = RegistryError::OtherType { name: "clerk".to_string(), asked: "u8" };
    assert_eq!(registry.lookup::<u8>("clerk").unwrap_err(), other);
    assert_eq!(registry.lookup::<u32>("notary").unwrap_err(), unknown("notary"));
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_removed_when_its_actor_is_gone() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    for name in ["bob", "ada"] {
        let scribe = hire(system.root(), &diary, name, never(name));
        system.registry().register(name, &scribe).unwrap();
    }
    assert_eq!(system.registry().names(), ["ada", "bob"]);
    let bob: Address<Say> = system.registry().lookup("bob").unwrap();
    bob.tell(Say::Stop).await.unwrap();
    settle().await;
    assert_eq!(system.registry().size(), 1);
    assert_eq!(system.registry().names(), ["ada"]);
}
