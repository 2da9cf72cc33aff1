// A session of Claude Code with one of everything that a page shows, and long ones for the bench.
export const id = '5e551000-0000-4000-8000-000000000001';

export function session({ turns = 8, calls = 3, lines = 30 } = {}) {
  const records = [];
  let n = 0, last = null;
  const uuid = at => `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`;
  const add = (record, parent = last) => {
    const at = n++;
    const time = new Date(Date.UTC(2026, 0, 2, 9) + at * 20_000 + Math.floor(at / 60) * 3_600_000).toISOString();
    records.push({
      parentUuid: parent === null ? null : uuid(parent), isSidechain: false, userType: 'external', cwd: '/home/ada/garden',
      sessionId: id, version: '2.1.0', gitBranch: 'main', uuid: uuid(at), timestamp: time, ...record,
    });
    return (last = at);
  };
  const usage = () => ({ input_tokens: 10, output_tokens: 50, cache_read_input_tokens: 9_000 + (n % 400) * 200, cache_creation_input_tokens: 0 });
  const said = (role, content, more = {}) =>
    add({ type: role, message: { role, content, ...(role === 'assistant' ? { id: `msg_${n}`, model: 'claude-x', usage: usage() } : {}) }, ...more });
  const call = (name, input, result, isError = false) => {
    const tool = `toolu_${n}`;
    said('assistant', [{ type: 'tool_use', id: tool, name, input }]);
    said('user', [{ type: 'tool_result', tool_use_id: tool, content: result, is_error: isError }]);
  };
  const output = what => Array.from({ length: lines }, (_, at) => `${what} ${at}: bed ${at * 7 % 13} was watered for ${at} minutes`).join('\n');
  for (let turn = 0; turn < turns; turn += 1) {
    if (turn === 5) {
      add({ type: 'system', subtype: 'compact_boundary', content: 'Conversation compacted', isMeta: false, logicalParentUuid: uuid(last), compactMetadata: { trigger: 'auto', preTokens: 88_000 } }, null);
      said('user', 'This session is being continued from a previous conversation. Summary: the beds are watered.', { isCompactSummary: true, isVisibleInTranscriptOnly: true });
    }
    said('user', turn === 0 ? 'Water the beds and keep the tests green.' : `Look at bed ${turn}, please. Is it dry?`);
    const fork = last;
    if (turn === 2) {
      said('assistant', [{ type: 'text', text: 'I flood **everything**.' }]);
      call('Bash', { command: 'flood --all' }, 'Exit code 3\nno water', true);
      last = fork - 1;
      said('user', 'Only water what is dry.');
    }
    said('assistant', [{ type: 'thinking', thinking: `Bed ${turn} may be dry.`, signature: 'x' }, { type: 'text', text: `I look at bed ${turn} first.\n\n- one\n- two\n\n\`\`\`sh\nls beds\n\`\`\`` }]);
    for (let at = 0; at < calls; at += 1) {
      if (at % 3 === 0) call('Bash', { command: `water --bed ${turn} --minutes ${at}` }, turn % 3 === 1 && at === 0 ? 'Exit code 1\n\x1b[31mno pressure\x1b[0m' : output('log'), turn % 3 === 1 && at === 0);
      if (at % 3 === 1) call('Read', { file_path: `/home/ada/garden/src/bed${turn}.rs` }, output('fn'));
      if (at % 3 === 2) call('Edit', { file_path: `/home/ada/garden/src/bed${turn}.rs`, old_string: `let dry = ${at};\nlet wet = 1;`, new_string: `let dry = ${at + 1};\nlet wet = 1;` }, 'The file was updated.');
    }
    if (turn === 3) call('TodoWrite', { todos: [{ content: 'Look', status: 'completed', activeForm: 'Looking' }, { content: 'Water', status: 'in_progress', activeForm: 'Watering' }] }, 'ok');
    said('assistant', [{ type: 'text', text: `Bed ${turn} is [watered](https://garden.example/). See \`src/bed${turn}.rs\`.` }]);
  }
  return records.map(record => JSON.stringify(record)).join('\n') + '\n';
}
