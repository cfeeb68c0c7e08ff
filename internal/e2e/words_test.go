//go:build linux

package e2e

// three is a team of two with three tasks, the third after the first.
const three = `
speakers:
  lead:
    - say: Three tasks.
      do:
        - task_create: {subject: one, description: Write one.}
        - task_create: {subject: two, description: Write two.}
        - task_create: {subject: three, description: Write three., blocked_by: [one]}
        - spawn_teammate: {name: alice, role: coder, prompt: You write files.}
        - spawn_teammate: {name: bob, role: coder, prompt: You write files too.}
    - do: [{wait: {}}]
      until: All done
    - say: All three have landed.
scenes:
  - cue: 'Task #(?P<id>\d+): (?P<word>one|two|three)\n'
    who: [coder]
    turns:
      - think: It is a small file.
        say: I write it.
        do:
          - write_file: {path: "${word}.txt", content: "${word}\n"}
          - bash: {command: "cat ${word}.txt README"}
      - do: [{task_list: {}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes ${word}."}}]
`
