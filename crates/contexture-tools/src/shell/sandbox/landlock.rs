//! Landlock: which files can be reached.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::reach::{DEVICES, Reach};

/// What is asked for. Older kernels do as much of it as they can.
const NEWEST: ABI = ABI::V6;

/// Binds this thread.
pub fn bind(reach: &Reach) -> Result<(), String> {
    let status = rules(reach).map_err(|error| error.to_string())?;
    match status {
        RulesetStatus::NotEnforced => Err("Landlock is not enforced".to_owned()),
        _ => Ok(()),
    }
}

fn rules(reach: &Reach) -> Result<RulesetStatus, RulesetError> {
    let read = AccessFs::from_read(NEWEST);
    // Devices are not made, and are not spoken to.
    let never: BitFlags<AccessFs> = AccessFs::IoctlDev | AccessFs::MakeChar | AccessFs::MakeBlock;
    let write = AccessFs::from_all(NEWEST) & !never;
    let mut rules = Ruleset::default()
        // What version 3 has must hold; the rest is more than is needed.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !reach.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let status = rules
        .create()?
        .add_rules(path_beneath_rules(&reach.read, read))?
        .add_rules(path_beneath_rules(&reach.closed, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(&reach.write, write))?
        .add_rules(path_beneath_rules(DEVICES, write))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// The kernel's version of Landlock, if it can be used. Tried in a thread that is thrown away.
pub fn abi() -> Option<u32> {
    let tried = std::thread::spawn(|| {
        let rules = Ruleset::default().handle_access(AccessFs::from_all(ABI::V1))?;
        rules.create()?.restrict_self()
    });
    match tried.join().ok()?.ok()?.landlock {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => kernel_abi
            .and_then(|abi| u32::try_from(abi).ok())
            .or(Some(effective_abi as u32)),
        _ => None,
    }
}
