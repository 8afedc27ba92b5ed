package ptp

// job is a message to send.
type job struct {
	peer    *peer // its receiver
	message Message
	owed    int64 // correction that the follow-up of the message must carry
}

// queue is a FIFO of jobs that drops new ones beyond limit.
type queue struct {
	jobs  []job
	head  int
	limit int
}

// push appends a job.
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

// pop removes the first job. It returns false if there is none.
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
