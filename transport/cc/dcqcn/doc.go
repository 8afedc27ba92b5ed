// Package dcqcn implements DCQCN, the congestion control of RoCEv2 (Zhu et al., "Congestion Control
// for Large-Scale RDMA Deployments", SIGCOMM 2015).
//
//	sender (reaction point)      switch           receiver (notification point)
//	Sender ──── packets ───────► marks ─────────► Notifier
//	   ▲                         (package fabric)     │
//	   └──── congestion notification packets ◄────────┘
//
// The one idea: the sender has a rate and no window. A notification cuts the rate by α/2, where α
// estimates congestion. Timers and bytes sent then count stages, and each stage moves the rate
// halfway back to a target rate, which is first kept (fast recovery), then raised by RAI (additive
// increase), then by RHAI (hyper increase). In come notifications and the sizes of sent packets,
// out comes a pacing rate between MinRate and the line rate.
//
// Two algorithms go by the name; Params.Mode selects one:
//
//   - Paper: every notification cuts at once. α decays on a timer that the notification restarts. A
//     timer and a byte counter count stages.
//   - Mellanox: what NICs do. Notifications are collected: once per interval α rises if one came
//     and decays if not, and the rate is cut at most once per decrease interval. Only time counts
//     stages.
//
// They share their state, their limits and the rule for the target rate (Params.Clamp). paper.go
// and mellanox.go hold what differs. The defaults are those of NICs; presets.go has those of
// publications and simulators.
//
// Left out of the simulator of the SIGCOMM authors: it halves timer and byte counter during hyper
// increase, and divides a target of more than ten times the rate by eight. Left out of the NICs'
// parameters: RPG_GD and RPG_MIN_DEC_FAC, which with α at most 1 add nothing to the cut by α/2, and
// RPG_BYTE_RESET, whose default of 32 MB never comes before the timer.
//
// Rates are bits per second, sizes bytes on the wire. The package reads no clock. Start reading at
// Sender in sender.go.
package dcqcn
