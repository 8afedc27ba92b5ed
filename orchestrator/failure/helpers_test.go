package failure

import "weft/orchestrator/experiment/experimenttest"

const faultyLab = experimenttest.FaultyLab

var build = experimenttest.Build
