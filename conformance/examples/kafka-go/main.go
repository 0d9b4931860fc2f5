// kafka-go's group balancers: one case per line in, one answer per line out.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/segmentio/kafka-go"
)

type groupCase struct {
	ID      string
	Topics  map[string]int
	Members []struct {
		ID         string
		Subscribed []string
	}
}

var balancers = map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}

func main() {
	if len(os.Args) != 2 || balancers[os.Args[1]] == nil {
		log.Fatal("usage: kafka-go range|roundrobin")
	}
	answers := json.NewEncoder(os.Stdout)
	for cases := json.NewDecoder(os.Stdin); cases.More(); {
		var c groupCase
		must(cases.Decode(&c))
		must(answers.Encode(map[string]any{"id": c.ID, "assignment": assign(balancers[os.Args[1]], c)}))
	}
}

// As the client's assignTopicPartitions does: partitions of the subscribed topics that exist, members by id and topics only.
func assign(balancer kafka.GroupBalancer, c groupCase) map[string][]string {
	var members []kafka.GroupMember
	var partitions []kafka.Partition
	assignment, seen := map[string][]string{}, map[string]bool{}
	for _, m := range c.Members {
		members = append(members, kafka.GroupMember{ID: m.ID, Topics: m.Subscribed})
		assignment[m.ID] = []string{}
		for _, topic := range m.Subscribed {
			for p := 0; p < c.Topics[topic] && !seen[topic]; p++ {
				partitions = append(partitions, kafka.Partition{Topic: topic, ID: p})
			}
			seen[topic] = true
		}
	}
	for id, topics := range balancer.AssignGroups(members, partitions) {
		for topic, ids := range topics {
			for _, p := range ids {
				assignment[id] = append(assignment[id], fmt.Sprintf("%s-%d", topic, p))
			}
		}
	}
	return assignment
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
