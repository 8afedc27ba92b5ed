// Package dcqcn is DCQCN, the congestion control of RoCEv2: Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015. A switch marks packets (package fabric), the receiver answers marks with
// congestion notification packets (Notifier, the paper's notification point), and the sender cuts its rate on
// them and wins it back by timers and by bytes sent (Sender, the reaction point). There is no window.
//
// Two machines go by the name, and Params.Mode says which one is meant:
//
//   - Paper: every notification cuts at once; α decays on a timer that the notification restarts; a timer and a
//     byte counter count stages.
//   - Mellanox: what NICs do. Notifications are collected: α moves every interval by whether one came, and the rate is cut
//     at most once per decrease interval. Only time counts stages.
//
// They share their state, their limits and the rule for the target rate (Params.Clamp); paper.go and mellanox.go
// hold what differs. Defaults are the NICs'; the sets of publications and
// simulators are presets of a lab (orchestrator/lab).
//
// Left out of the SIGCOMM authors' simulator: it halves timer and byte counter during hyper increase, and divides
// a target of more than ten times the rate by eight. Left out of the NICs' parameters: RPG_GD and RPG_MIN_DEC_FAC, which
// with α at most 1 say no more than the cut by α/2, and RPG_BYTE_RESET, whose default of 32 MB never comes before the timer.
//
// Rates are bits per second, sizes bytes on the wire. The package reads no clock.
package dcqcn
