// sarama's balance strategies as its elected leader runs them: one case per line in, one answer per line out.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

type groupCase struct {
	ID      string
	Fresh   bool
	Topics  map[string]int32
	Members []member
}

type member struct {
	ID                string
	Instance, Rack    *string
	Subscribed, Owned []string
	Generation        *int32
	Version           *int16
	Metadata          []byte
}

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

func main() {
	if len(os.Args) != 2 || strategies[os.Args[1]] == nil {
		log.Fatal("usage: sarama range|roundrobin|sticky|cooperative-sticky")
	}
	newStrategy := strategies[os.Args[1]]
	strategy := newStrategy()
	answers := json.NewEncoder(os.Stdout)
	for cases := json.NewDecoder(os.Stdin); cases.More(); {
		var c groupCase
		must(0, cases.Decode(&c))
		if c.Fresh {
			strategy = newStrategy()
		}
		if assignment, err := assign(strategy, c); err != nil {
			must(0, answers.Encode(map[string]any{"id": c.ID, "error": err.Error()}))
		} else {
			must(0, answers.Encode(map[string]any{"id": c.ID, "assignment": assignment}))
		}
	}
}

// As the client's balance does: every subscribed topic is in the map; members that the plan leaves out get nothing.
// (The client gives up when a topic has no metadata; here such a topic has no partitions.)
func assign(strategy sarama.BalanceStrategy, c groupCase) (map[string][]string, error) {
	var joined sarama.JoinGroupResponse
	for _, m := range c.Members {
		joined.Members = append(joined.Members, sarama.GroupMember{MemberId: m.ID, GroupInstanceId: m.Instance, Metadata: m.encode(strategy)})
	}
	members, err := joined.GetMembers()
	if err != nil {
		return nil, err
	}
	topics := map[string][]int32{}
	for _, m := range members {
		for _, topic := range m.Topics {
			topics[topic] = make([]int32, c.Topics[topic])
			for p := range topics[topic] {
				topics[topic][p] = int32(p)
			}
		}
	}
	plan, err := strategy.Plan(members, topics)
	if err != nil {
		return nil, err
	}
	assignment := map[string][]string{}
	for id := range members {
		assignment[id] = []string{}
	}
	for id, topics := range plan {
		for topic, partitions := range topics {
			for _, p := range partitions {
				assignment[id] = append(assignment[id], fmt.Sprintf("%s-%d", topic, p))
			}
		}
	}
	return assignment, nil
}

// What sarama itself sends: claims in user data for sticky (written by the leader, sent back by the member), owned
// partitions and generation for cooperative-sticky. A member below version 2 is an older client, without that generation.
func (m member) encode(strategy sarama.BalanceStrategy) []byte {
	if m.Metadata != nil {
		return m.Metadata
	}
	owned, generation := map[string][]int32{}, int32(-1)
	for _, tp := range m.Owned {
		dash := strings.LastIndex(tp, "-")
		owned[tp[:dash]] = append(owned[tp[:dash]], int32(must(strconv.Atoi(tp[dash+1:]))))
	}
	if m.Generation != nil {
		generation = *m.Generation
	}
	metadata := &sarama.ConsumerGroupMemberMetadata{Version: 2, Topics: m.Subscribed, GenerationID: generation, RackID: m.Rack}
	if m.Version != nil {
		metadata.Version = *m.Version
	}
	switch strategy.Name() {
	case sarama.StickyBalanceStrategyName:
		if len(m.Owned) > 0 {
			metadata.UserData = must(strategy.AssignmentData(m.ID, owned, generation))
		}
	case sarama.CooperativeStickyBalanceStrategyName:
		for topic, partitions := range owned {
			metadata.OwnedPartitions = append(metadata.OwnedPartitions, &sarama.OwnedPartition{Topic: topic, Partitions: partitions})
		}
	}
	var request sarama.JoinGroupRequest
	must(0, request.AddGroupProtocolMetadata(strategy.Name(), metadata))
	return request.OrderedGroupProtocols[0].Metadata
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
