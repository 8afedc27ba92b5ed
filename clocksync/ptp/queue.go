package ptp

// job is a message to be sent.
type job struct {
	peer    *peer
	message Message
	owed    int64 // correction that the Follow_Up of the message has to carry
}

// queue holds jobs in order; beyond limit they are dropped.
type queue struct {
	jobs  []job
	head  int
	limit int
}

func (q *queue) push(j job) {
	if len(q.jobs)-q.head >= q.limit {
		return
	}
	if q.head > 0 && len(q.jobs) == cap(q.jobs) {
		n := copy(q.jobs, q.jobs[q.head:])
		q.jobs, q.head = q.jobs[:n], 0
	}
	q.jobs = append(q.jobs, j)
}

func (q *queue) pop() (job, bool) {
	if q.head == len(q.jobs) {
		return job{}, false
	}
	j := q.jobs[q.head]
	q.head++
	if q.head == len(q.jobs) {
		q.jobs, q.head = q.jobs[:0], 0
	}
	return j, true
}
