//! Files of jobs, copied over the link.

use cohabit_transfer::{ReceiveLimits, Receiver, Target};
use cohabit_types::{
    COPY_LIMIT, CopyDepth, CopyId, CopyRead, CopyRequest, FileCopyOrder, FollowMode, MOST_COPIES,
    RefusalCode, Role,
};

use crate::kit::{Cluster, Joined, rank};

fn order(number: u64, folder: &std::path::Path) -> FileCopyOrder {
    let id = CopyId { rank: rank(1), number };
    FileCopyOrder {
        request: CopyRequest { id, path: "model.pt".into(), depth: CopyDepth::File, limit: COPY_LIMIT },
        user: "ada".into(),
        account: own_account(),
        role: Role::Admin,
        workdir: folder.to_str().unwrap().into(),
        code_workdir: None,
    }
}

/// As which the tests run.
fn own_account() -> String {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap().name
}

fn read_from(id: CopyId, from: u64) -> CopyRead {
    CopyRead { id, from, at_end: FollowMode::Wait }
}

/// The content of the file that is copied.
async fn received(head: &Joined, id: CopyId) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy");
    let mut receiver = Receiver::new(Target::Path(path.clone()), ReceiveLimits { bytes: COPY_LIMIT });
    let mut from = 0;
    loop {
        let piece = head.read_copy(read_from(id, from)).await.unwrap();
        // A piece that was lost on the way comes again.
        assert_eq!(head.read_copy(read_from(id, from)).await.unwrap(), piece);
        from += piece.bytes.len() as u64;
        receiver.take(&piece.bytes).unwrap();
        if piece.is_last {
            receiver.finish().unwrap();
            return std::fs::read(path).unwrap();
        }
    }
}

#[tokio::test]
async fn a_copy_arrives_in_pieces_of_which_each_may_be_asked_for_again() {
    let mut cluster = Cluster::new().await;
    let (daemon, head) = cluster.worker().await;
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    std::fs::write(folder.path().join("model.pt"), &content).unwrap();
    let order = order(7, folder.path());
    let id = order.request.id;
    head.start_copy(order.clone()).await.unwrap();
    head.start_copy(order).await.unwrap();
    assert!(received(&head, id).await == content);
    let out_of_order = head.read_copy(read_from(id, 3)).await.unwrap_err();
    assert_eq!(out_of_order.code, RefusalCode::Invalid);
    head.end_copy(id).await.unwrap();
    assert_eq!(head.read_copy(read_from(id, 0)).await.unwrap_err().code, RefusalCode::NotFound);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn few_copies_of_a_user_go_on_at_once_and_others_have_their_own() {
    let mut cluster = Cluster::new().await;
    let (daemon, head) = cluster.worker().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.pt"), "1").unwrap();
    for number in 0..MOST_COPIES as u64 {
        head.start_copy(order(number, folder.path())).await.unwrap();
    }
    let refused = head.start_copy(order(99, folder.path())).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::Limit);
    head.start_copy(FileCopyOrder { user: "bea".into(), ..order(100, folder.path()) }).await.unwrap();
    head.end_copy(order(0, folder.path()).request.id).await.unwrap();
    head.start_copy(order(99, folder.path())).await.unwrap();
    let empty = order(101, folder.path());
    let empty = FileCopyOrder { request: CopyRequest { path: String::new(), ..empty.request }, ..empty };
    assert_eq!(head.start_copy(empty).await.unwrap_err().code, RefusalCode::Invalid);
    daemon.stop().await.unwrap();
}
