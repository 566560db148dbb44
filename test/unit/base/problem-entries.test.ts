import { describe, expect, it } from 'vitest';
import { anchorOf, findProblemEntry, matchingProblemCodes, readProblemEntries } from '../../../src/base/problem-entries.ts';

const TROUBLESHOOTING = `# Troubleshooting

## HOST_LOCKED, LOCK_LOST

- Symptom: the host is not changed; see
  [fleet.md](fleet.md#locks).
- Cause: two of them.
  - \`A\`: another run,
    on the same host.
  - \`B\`: none.
- Fix:

\`\`\`sh
kubeletadm fleet status    # shows the lock
kubeletadm apply --break-lock
\`\`\`
`;
const HOSTS = `# Hosts

## Connection, and more

| Code | Cause | Fix |
| --- | --- | --- |
| \`HOST_TIMEOUT\` | Too slow ([usage](usage.md#time)). | \`uptime\` |
| \`Port\` | In use. | Stop it: \`ss -ltnp\`. |
`;
const ENTRIES = readProblemEntries([
  { name: 'troubleshooting.md', text: TROUBLESHOOTING },
  { name: 'problems-hosts.md', text: HOSTS },
]);

describe('the entries of the documentation', () => {
  it('are sections', () => {
    expect(ENTRIES[0]).toEqual({
      codes: ['HOST_LOCKED', 'LOCK_LOST'],
      symptom: 'The host is not changed; see docs/fleet.md#locks.',
      cause: 'Two of them.\n- `A`: another run, on the same host.\n- `B`: none.',
      fix: '',
      commands: ['kubeletadm fleet status    # shows the lock', 'kubeletadm apply --break-lock'],
      page: 'docs/troubleshooting.md#host_locked-lock_lost',
    });
  });

  it('are rows of tables', () => {
    expect(ENTRIES.slice(1)).toEqual([
      {
        codes: ['HOST_TIMEOUT'],
        symptom: null,
        cause: 'Too slow (usage (docs/usage.md#time)).',
        fix: 'uptime',
        commands: [],
        page: 'docs/problems-hosts.md#connection-and-more',
      },
      expect.objectContaining({ codes: ['Port'], fix: 'Stop it: `ss -ltnp`.' }),
    ]);
  });

  it.each([
    ['HOST_LOCKED', 'HOST_LOCKED'],
    ['lock_lost', 'HOST_LOCKED'],
    ['[HOST_TIMEOUT]', 'HOST_TIMEOUT'],
    ['[ERROR Port-6443]:', 'Port'],
    ['port', 'Port'],
    ['HOST', undefined],
    ['', undefined],
  ])('are found by %j', (code, first) => {
    expect(findProblemEntry(code, ENTRIES)?.codes[0]).toBe(first);
  });

  it('are listed by a part of a code', () => {
    expect(matchingProblemCodes('lock', ENTRIES)).toEqual(['HOST_LOCKED', 'LOCK_LOST']);
    expect(matchingProblemCodes('', ENTRIES)).toHaveLength(4);
    expect(matchingProblemCodes('swap', ENTRIES)).toEqual([]);
  });
});

describe('the anchor of a heading', () => {
  it.each([
    ['Many hosts at once', 'many-hosts-at-once'],
    ['`fleet plan`, and more: v1.36', 'fleet-plan-and-more-v136'],
    ['A / B', 'a--b'],
  ])('of %j is %j', (heading, anchor) => {
    expect(anchorOf(heading)).toBe(anchor);
  });
});
