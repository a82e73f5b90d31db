# pragma version 0.4.3
"""
@title Reason texts: what the numbers of reasons.vy mean
@author Hearth
@license Apache-2.0
@notice Written by `make reasons` from hearth/protocol/reasons.py. One row of 32 bytes a reason, padded with blanks.
"""

ROW: constant(uint256) = 32  # bytes
ROWS: constant(
    String[5184]
) = "jobs: not the submitter         jobs: paused                    jobs: policy not current        jobs: posted before             jobs: spare bits set            jobs: spec zero                 jobs: no runtime asked          jobs: ceiling zero              jobs: max_seconds out of range  jobs: deadline too near         jobs: units out of range        jobs: chunk out of range        jobs: no chunks yet             jobs: replicas out of range     jobs: replicas need a judge     jobs: quorum out of range       jobs: match_window out of range jobs: challenge_window range    jobs: checkpoint out of range   jobs: attempts out of range     jobs: billing out of range      jobs: no confidential jobs yet  jobs: no preemptible jobs yet   jobs: unknown flag              jobs: no judge named            jobs: refused by the judge      jobs: parents not as hashed     jobs: price below minimum       jobs: keeper_fee out of range   jobs: bond too large            jobs: escrow too large          jobs: wrong value sent          jobs: transfer failed           jobs: no such unit              jobs: not the next unit         jobs: closed                    jobs: nothing untouched         jobs: not open                  jobs: not running               jobs: not closing               jobs: not submitted             jobs: takes claims only         jobs: takes no claims yet       jobs: a proposal is live        jobs: no proposal               jobs: window over               jobs: window still open         jobs: not a better key          jobs: best already              jobs: node excluded             jobs: operator is the submitter jobs: no time left              jobs: no such checkpoint        jobs: too late to submit        jobs: outcome out of range      jobs: used out of range         jobs: result zero               jobs: reclaimable               jobs: not reclaimable yet       jobs: notice still running      jobs: not expired               jobs: nothing to do             jobs: not the judge             jobs: not disputed              jobs: too late to dispute       jobs: chain id has changed      jobs: too late to decline       jobs: too early to settle       jobs: treasury zero             jobs: verdict out of range      jobs: deadline too far          jobs: parents out of range      jobs: not blocked               jobs: a parent has not ended    jobs: not metered               nodes: not live                 nodes: stake below minimum      nodes: exiting                  nodes: quarantined              nodes: no free slot             nodes: free stake short         nodes: runtime missing          nodes: too few GPUs             nodes: VRAM short               nodes: cores short              nodes: RAM short                nodes: disk short               nodes: GPU tier not as asked    nodes: zone not allowed         nodes: ask above ceiling        nodes: on probation             nodes: jobs zero                nodes: dead_after out of range  nodes: ask_notice out of range  nodes: unbonding out of range   nodes: minimum out of range     nodes: reference out of range   nodes: fee above minimum        nodes: ration out of range      nodes: paused                   nodes: operator zero            nodes: stake too large          nodes: no ids left              nodes: unknown node             nodes: node of another owner    nodes: amount zero              nodes: ask has its own call     nodes: busy                     nodes: an ask is pending        nodes: not offered to you       nodes: not exiting              nodes: still unbonding          nodes: bond outstanding         nodes: not the operator         nodes: nothing to do            nodes: wrong value sent         nodes: transfer failed          nodes: spare bits set           nodes: no slots                 nodes: no runtime               nodes: ask out of range         nodes: not the owner            nodes: not the job registry     nodes: not the governor         nodes: paused lately            nodes: shares too large         escrow: no such asset           escrow: too large               escrow: wrong value             escrow: not native              escrow: not funded              escrow: share for nobody        escrow: short                   escrow: bad receiver            escrow: receiver refused        escrow: token refused           lens: nothing to do             rules: not the governor         rules: policy out of range      rules: not offered to you       rules: paused lately            rules: changed lately           attesters: wrong keys or quorum attesters: too few signatures   attesters: no such key          attesters: malformed signature  attesters: wrong signer         attesters: not in order         steward: not the council        steward: not council or guardiansteward: no such change         steward: not an address         steward: queued already         steward: not queued             steward: was dropped            steward: was executed           steward: not due yet            steward: no longer due          steward: nothing named          steward: not offered to you     steward: council zero           steward: delay out of range     "


@pure
@internal
def _text(reason: uint256) -> String[ROW]:
    """
    @return The text without the blanks that pad it; none for a number that is no reason's.
    """
    row: uint256 = 0
    if reason >= 1000 and reason <= 1074:
        row = reason - 1000
    elif reason >= 2001 and reason <= 2016:
        row = reason - 1926
    elif reason >= 2100 and reason <= 2134:
        row = reason - 2009
    elif reason >= 3000 and reason <= 3009:
        row = reason - 2874
    elif reason >= 4000 and reason <= 4000:
        row = reason - 3864
    elif reason >= 5000 and reason <= 5004:
        row = reason - 4863
    elif reason >= 6000 and reason <= 6005:
        row = reason - 5858
    elif reason >= 7000 and reason <= 7013:
        row = reason - 6852
    else:
        return ""
    text: String[ROW] = slice(ROWS, row * ROW, ROW)
    rest: uint256 = convert(convert(text, Bytes[ROW]), uint256)
    size: uint256 = ROW
    for i: uint256 in range(ROW):
        # lanes: the last byte
        if rest & 255 != 32:
            break
        # lanes: the byte before it
        rest >>= 8
        size -= 1
    return slice(text, 0, size)
