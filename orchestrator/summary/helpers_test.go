package summary

import "weft/orchestrator/experiment/experimenttest"

const star, faultyLab = experimenttest.Star, experimenttest.FaultyLab

const eight = `
weft: 1
name: eight
topology: {kind: star, hosts: 8, link: {rate: 100Gbps, delay: 1us}}
`

var build = experimenttest.Build
