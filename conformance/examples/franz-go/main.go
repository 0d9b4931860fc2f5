// franz-go's balancers as its elected leader runs them: one case per line in, one answer per line out.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type groupCase struct {
	ID      string
	Topics  map[string]int32
	Members []member
}

type member struct {
	ID, Instance, Rack *string
	Subscribed, Owned  []string
	Generation         *int32
	Version            *int16
	Metadata           []byte
}

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func main() {
	if len(os.Args) != 2 || balancers[os.Args[1]] == nil {
		log.Fatal("usage: franz-go range|roundrobin|sticky|cooperative-sticky")
	}
	balancer := balancers[os.Args[1]]
	answers := json.NewEncoder(os.Stdout)
	for cases := json.NewDecoder(os.Stdin); cases.More(); {
		var c groupCase
		must(0, cases.Decode(&c))
		if assignment, err := assign(balancer, c); err != nil {
			must(0, answers.Encode(map[string]any{"id": c.ID, "error": err.Error()}))
		} else {
			must(0, answers.Encode(map[string]any{"id": c.ID, "assignment": assignment}))
		}
	}
}

// As the client's balanceGroup does: members sorted by instance id, then member id; topics counted only if they exist.
func assign(balancer kgo.GroupBalancer, c groupCase) (map[string][]string, error) {
	var joined []kmsg.JoinGroupResponseMember
	for _, m := range c.Members {
		joined = append(joined, kmsg.JoinGroupResponseMember{MemberID: *m.ID, InstanceID: m.Instance, ProtocolMetadata: m.encode(balancer)})
	}
	slices.SortStableFunc(joined, func(l, r kmsg.JoinGroupResponseMember) int {
		if l.InstanceID != nil && r.InstanceID != nil {
			return cmp.Compare(*l.InstanceID, *r.InstanceID)
		} else if l.InstanceID != nil {
			return -1
		} else if r.InstanceID != nil {
			return 1
		}
		return cmp.Compare(l.MemberID, r.MemberID)
	})
	group, interests, err := balancer.MemberBalancer(joined)
	if err != nil {
		return nil, err
	}
	counts := map[string]int32{}
	for topic := range interests {
		if n, exists := c.Topics[topic]; exists {
			counts[topic] = n
		}
	}
	plan, err := group.(kgo.GroupMemberBalancerOrError).BalanceOrError(counts)
	if err != nil {
		return nil, err
	}
	assignment := map[string][]string{}
	for _, synced := range plan.IntoSyncAssignment() {
		assignment[synced.MemberID] = []string{}
		for topic, partitions := range must(balancer.ParseSyncAssignment(synced.MemberAssignment)) {
			for _, p := range partitions {
				assignment[synced.MemberID] = append(assignment[synced.MemberID], fmt.Sprintf("%s-%d", topic, p))
			}
		}
	}
	return assignment, nil
}

// What franz-go itself sends, claims included. A member below version 2 is an older client: no user data under the cooperative protocol.
func (m member) encode(balancer kgo.GroupBalancer) []byte {
	if m.Metadata != nil {
		return m.Metadata
	}
	owned, generation := map[string][]int32{}, int32(-1)
	for _, tp := range m.Owned {
		dash := strings.LastIndex(tp, "-")
		owned[tp[:dash]] = append(owned[tp[:dash]], int32(must(strconv.Atoi(tp[dash+1:]))))
	}
	for _, partitions := range owned {
		slices.Sort(partitions)
	}
	if m.Generation != nil {
		generation = *m.Generation
	}
	var metadata kmsg.ConsumerMemberMetadata
	must(0, metadata.ReadFrom(balancer.JoinGroupMetadata(slices.Sorted(slices.Values(m.Subscribed)), owned, generation)))
	metadata.Rack = m.Rack
	if m.Version != nil {
		metadata.Version = *m.Version
	}
	if balancer.IsCooperative() && metadata.Version < 2 {
		metadata.UserData = nil
	}
	return metadata.AppendTo(nil)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
