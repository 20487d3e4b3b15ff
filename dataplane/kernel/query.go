package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// query sends one message and gives each reply to each, whose argument is
// valid for that call only. It reads all replies, also after an error.
func (c *Conn) query(h header, attrs []byte, each func(message)) error {
	c.sequence++
	h.sequence = c.sequence
	if h.flags&unix.NLM_F_DUMP == 0 {
		h.flags |= unix.NLM_F_ACK // so that every answer has an end
	}
	if err := c.send(endMessage(append(appendHeader(nil, h), attrs...), 0)); err != nil {
		return err
	}
	var interrupted bool
	answer, err := c.answer(func(m message) {
		interrupted = interrupted || m.flags&unix.NLM_F_DUMP_INTR != 0
		each(m)
	})
	switch {
	case err != nil:
		return err
	case answer.errno == unix.EPERM:
		return fmt.Errorf("CAP_NET_ADMIN is missing; run as root, or in a container with the capability NET_ADMIN: %w", answer.errno)
	case answer.errno != 0:
		return answer.errno
	case interrupted:
		return ErrInterrupted
	}
	return nil
}

// answer reads the replies to the last message up to the one that ends them.
func (c *Conn) answer(each func(message)) (end verdict, err error) {
	ended := false
	err = c.drain(func(m message) {
		switch {
		case m.sequence != c.sequence || ended:
		case m.kind == unix.NLMSG_DONE, m.kind == unix.NLMSG_ERROR:
			end, ended = m.verdict(), true
		default:
			each(m)
		}
	})
	if err == nil && !ended {
		err = errors.New("the kernel did not answer")
	}
	return end, err
}

// drain reads everything that is there. It returns ENOBUFS if replies have
// been lost, and any other error of the socket at once.
func (c *Conn) drain(each func(message)) error {
	var lost error
	for {
		b, err := c.receive()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return lost
		case errors.Is(err, unix.ENOBUFS):
			lost = err
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		}
		for m := range messages(b) {
			each(m)
		}
	}
}
