//! `cp.async` on its own; `wgmma.rs` tests copies into memory that a multiply reads.

use super::{Status, driver, run};

/// Each thread copies its number, and its number plus 100, to its neighbour's place, and stores its own place after
/// `wait`.
fn copied(wait: &str) -> Result<Vec<u32>, Status> {
    let body = format!(
        "mov.u32 %r0, room; mad.lo.u32 %r1, %thread, 16, %r0; xor.b32 %r2, %thread, 1; mad.lo.u32 %r2, %r2, 16, %r0;
        mov.u32 %r4, 7; st.shared.u32 [%r1], %r4; bar.sync 0;
        add.u32 %r3, %thread, 100; st.global.v4.b32 [%out], {{%thread, %r3, %r3, %r3}};
        cp.async.cg.shared.global [%r2], [%out], 16; cp.async.commit_group;
        {wait} bar.sync 0;
        ld.shared.u32 %r4, [%r1]; ld.shared.u32 %r5, [%r1+4]; st.global.u32 [%out], %r4; st.global.u32 [%out+4], %r5;"
    );
    run(&body, 2, 4)
}

#[test]
fn a_copy_arrives_when_it_is_waited_for_and_not_before() {
    let words = copied("cp.async.wait_group 0;").unwrap();
    assert_eq!([words[0], words[1], words[4], words[5]], [1, 101, 0, 100]);
    // The latest group may still be under way.
    let words = copied("cp.async.wait_group 1;").unwrap();
    assert_eq!([words[0], words[4]], [7, 7]);
}

#[test]
fn a_copy_of_another_size_or_on_an_older_target_is_refused() {
    let link = |target: &str, statement: &str| {
        let source = format!(
            ".version 7.0\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r; .reg .b64 %x;\n{statement}\n}}\n"
        );
        driver("a100").link(&source, None).err().map(|refusal| refusal.status)
    };
    for (target, statement, refused) in [
        ("sm_80", "cp.async.ca.shared.global [%r], [%x], 4;", false),
        ("sm_80", "cp.async.cg.shared.global [%r], [%x], 8;", true),
        ("sm_75", "cp.async.ca.shared.global [%r], [%x], 4;", true),
    ] {
        assert_eq!(link(target, statement), refused.then_some(Status::INVALID_PTX), "{target} {statement}");
    }
}
