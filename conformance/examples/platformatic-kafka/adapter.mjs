// @platformatic/kafka's assigners as its elected leader runs them: one case per line in, one answer per line out.
import { createInterface } from 'node:readline'
import {
  cooperativeStickyAssigner,
  decodeConsumerProtocolSubscription,
  encodeConsumerProtocolSubscription,
  roundRobinAssigner,
} from '@platformatic/kafka'

const assigner = { 'roundrobin': roundRobinAssigner, 'cooperative-sticky': cooperativeStickyAssigner }[process.argv[2]]
if (!assigner) throw new Error('usage: adapter.mjs roundrobin|cooperative-sticky')
const cooperative = assigner === cooperativeStickyAssigner

// As the consumer's createAssignments does, but for its choice of topics: it assigns those of the leader. A case names no
// leader, so these are the topics that anybody subscribes to, as far as they exist.
function assign({ topics, members }) {
  const joined = new Map(members.map(member => [member.id, decode(member)]))
  const subscribed = [...new Set(members.flatMap(member => member.subscribed ?? []))].filter(topic => topic in topics).sort()
  const metadata = { topics: new Map(Object.entries(topics).map(([topic, partitionsCount]) => [topic, { partitionsCount }])) }
  const assignment = Object.fromEntries(members.map(({ id }) => [id, []]))
  for (const { memberId, assignments } of assigner(members[0]?.id, joined, new Set(subscribed), metadata)) {
    assignment[memberId] = [...assignments.values()].flatMap(({ topic, partitions }) => partitions.map(p => `${topic}-${p}`))
  }
  return assignment
}

// What the leader makes of a member's JoinGroup metadata. One below version 2 carries no generation.
function decode(member) {
  const bytes = member.metadata ? Buffer.from(member.metadata, 'base64') : encode(member)
  const { userData, ...subscription } = decodeConsumerProtocolSubscription(bytes)
  return { memberId: member.id, metadata: userData, ...subscription }
}

function encode({ subscribed = [], owned = [], generation = -1, rack = null, version = 3 }) {
  const partitions = new Map()
  for (const tp of cooperative ? owned : []) {
    const dash = tp.lastIndexOf('-')
    const topic = tp.slice(0, dash)
    partitions.set(topic, [...(partitions.get(topic) ?? []), Number(tp.slice(dash + 1))])
  }
  const ownedPartitions = [...partitions].map(([topic, partitions]) => ({ topic, partitions }))
  return encodeConsumerProtocolSubscription({ version, topics: subscribed, userData: null, ownedPartitions, generationId: generation, rackId: rack })
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, ...group } = JSON.parse(line)
  let answer
  try {
    answer = { id, assignment: assign(group) }
  } catch (error) {
    answer = { id, error: String(error) }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
