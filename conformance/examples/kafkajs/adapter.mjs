// kafkajs's round robin assigner: one case per line in, one answer per line out.
import { createInterface } from 'node:readline'
import kafkajs from 'kafkajs'

const { AssignerProtocol, PartitionAssigners } = kafkajs

// The assigner is told which topics to assign by its consumer: those of the leader. A case names no leader, so these are
// the topics that anybody subscribes to.
async function assign({ topics, members }) {
  const cluster = { findTopicPartitionMetadata: topic => Array.from({ length: topics[topic] ?? 0 }, (_, partitionId) => ({ partitionId })) }
  const assigner = PartitionAssigners.roundRobin({ cluster })
  const joined = members.map(member => ({
    memberId: member.id,
    memberMetadata: member.metadata ? Buffer.from(member.metadata, 'base64') : assigner.protocol({ topics: member.subscribed }).metadata,
  }))
  const assignment = Object.fromEntries(members.map(({ id }) => [id, []]))
  const subscribed = [...new Set(members.flatMap(member => member.subscribed ?? []))].sort()
  for (const { memberId, memberAssignment } of await assigner.assign({ members: joined, topics: subscribed })) {
    const decoded = AssignerProtocol.MemberAssignment.decode(memberAssignment)
    assignment[memberId] = Object.entries(decoded.assignment).flatMap(([topic, partitions]) => partitions.map(p => `${topic}-${p}`))
  }
  return assignment
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, ...group } = JSON.parse(line)
  const answer = await assign(group).then(assignment => ({ id, assignment }), error => ({ id, error: String(error) }))
  process.stdout.write(JSON.stringify(answer) + '\n')
}
