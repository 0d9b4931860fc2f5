# Kafka's RoundRobinAssignor: every partition in order to the next member that subscribes to its topic.
.id as $id
| .topics as $count
| (.members | sort_by([.instance == null, .instance // .id])) as $members
| ($members | length) as $n
| [([$members[].subscribed[]] | unique)[] as $topic | range($count[$topic] // 0) | {$topic, tp: "\($topic)-\(.)"}]
| reduce .[] as $p (
    {turn: 0, given: ($members | map({key: .id, value: []}) | from_entries)};
    (first(range(.turn; .turn + $n) % $n | select($members[.].subscribed | index($p.topic)))) as $who
    | .given[$members[$who].id] += [$p.tp]
    | .turn = $who + 1
  )
| {id: $id, assignment: .given}
