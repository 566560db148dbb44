import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toOperation } from '../../src/engine/apply.ts';

/** Has the pods a, b and c. Stopping one of `never` always fails, one of `once` the first time. */
const CRICTL = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$*" >> calls
case "$3 $4" in
  "pods -q") printf 'a\nb\nc\n';;
  stopp*) [ "$4" = "$NEVER" ] && exit 1; [ "$4" != "$ONCE" ] || [ -e seen ] || { touch seen; exit 1; };;
esac
`;

describe('removing the pods of a host', () => {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'ka-pods-'));
    writeFileSync(join(directory, 'crictl'), CRICTL);
    chmodSync(join(directory, 'crictl'), 0o755);
    writeFileSync(join(directory, 'sleep'), '#!/bin/sh\n');
    chmodSync(join(directory, 'sleep'), 0o755);
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  async function remove(env: Record<string, string>) {
    const operation = toOperation({ kind: 'remove-pods', criSocket: 'unix:///run/x.sock', because: 'reset' });
    if (operation.kind !== 'run') throw new Error('not a command');
    const [program = '', ...args] = operation.argv;
    const PATH = `${directory}${delimiter}${process.env.PATH ?? ''}`;
    const { exitCode, stderr } = await execa(program, args, { reject: false, env: { ...env, PATH } });
    const calls = readFileSync(join(directory, 'calls'), 'utf8').trim().split('\n');
    const removed = calls.flatMap((call) => /^--runtime-endpoint unix:\/\/\/run\/x\.sock rmp -f (\w)$/.exec(call)?.[1] ?? []);
    return { exitCode, stderr, removed, stops: calls.filter((call) => call.includes('stopp')).length };
  }

  it('removes all of them', async () => {
    expect(await remove({})).toEqual({ exitCode: 0, stderr: '', removed: ['a', 'b', 'c'], stops: 3 });
  });

  it('tries one that does not stop again', async () => {
    expect(await remove({ ONCE: 'b' })).toMatchObject({ exitCode: 0, removed: ['a', 'b', 'c'], stops: 4 });
  });

  it('removes the others when one stays, and says which', async () => {
    expect(await remove({ NEVER: 'b' })).toEqual({ exitCode: 1, stderr: 'these pods stay: b', removed: ['a', 'c'], stops: 7 });
  });
});
