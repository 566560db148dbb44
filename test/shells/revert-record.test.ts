import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type HistoryEntry, parseHistory } from '../../src/fleet/history/host-history.ts';
import { COMMIT_DIRECTORY, HISTORY_PATH, REVERT_SCRIPT } from '../../src/host/commit/revert-script.ts';
import { requirement } from '../support/requirement.ts';
import { ofThisProject, SHELLS } from '../support/shells.ts';

const ID = '0123456789abcdef';
const entry = (id: string, result: HistoryEntry['result'], reason = ''): string =>
  JSON.stringify({
    login: 'root',
    id,
    time: '2026-03-01T12:00:00.000Z',
    operator: 'alice@laptop',
    command: 'apply',
    reason,
    result,
    fields: [{ field: 'maxPods', before: null, after: 60 }],
    changes: [],
  });

describe.each(ofThisProject(SHELLS))('the record of an automatic rollback, in $name', (shell) => {
  let root: string;
  const at = (path: string): string => join(root, path);
  const history = (): string => at(HISTORY_PATH);
  const results = (): readonly string[] => parseHistory(readFileSync(history(), 'utf8')).map(({ id, result }) => `${id} ${result}`);

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'ka-revert-'));
    mkdirSync(at(`${COMMIT_DIRECTORY}/commit/files`), { recursive: true });
    mkdirSync(at('etc/systemd/system'), { recursive: true });
    writeFileSync(at(`${COMMIT_DIRECTORY}/revert`), REVERT_SCRIPT);
    const state = at(`${COMMIT_DIRECTORY}/commit`);
    writeFileSync(join(state, 'record'), `id ${ID}\nowner alice@laptop\narmed 1\ntimeout 300\nboot an-earlier-one\n`);
    writeFileSync(join(state, 'files/0'), 'maxPods: 110\n');
    writeFileSync(join(state, 'manifest'), 'f|0||/config.yaml\n');
    writeFileSync(at('config.yaml'), 'maxPods: 60\n');
    mkdirSync(dirname(history()), { recursive: true });
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const revert = (how: 'timer' | 'boot'): void => {
    const [program, ...options] = shell.options(root).shell;
    execFileSync(program, [...options, at(`${COMMIT_DIRECTORY}/revert`), how], {
      env: { ...process.env, KUBELETADM_ROOT: root },
      stdio: 'pipe',
    });
    expect(readFileSync(at('config.yaml'), 'utf8')).toBe('maxPods: 110\n');
    expect(existsSync(at(`${COMMIT_DIRECTORY}/reverted/record`))).toBe(true);
    expect(existsSync(at(`${COMMIT_DIRECTORY}/revert`))).toBe(false);
  };
  const skip = requirement(`the record of a rollback in ${shell.name}`, shell.missing);

  it.skipIf(skip).each(['timer', 'boot'] as const)('marks the change as rolled back (%s)', (how) => {
    const tricky = 'a "result":"started" in a text';
    const lines = [entry('fedcba9876543210-1', 'started'), entry(`${ID}-7`, 'started', tricky), entry(`${ID}-6`, 'failed'), '{"cut'];
    writeFileSync(history(), lines.join('\n'), { mode: 0o600 });
    revert(how);
    expect(results()).toEqual([`fedcba9876543210-1 started`, `${ID}-7 rolled-back`, `${ID}-6 failed`]);
    expect(readFileSync(history(), 'utf8').split('\n')).toHaveLength(4);
    expect(parseHistory(readFileSync(history(), 'utf8'))[1]).toMatchObject({ reason: tricky });
    expect(statSync(history()).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(history()))).toEqual(['history.jsonl']);
  });

  it.skipIf(skip)('tolerates a missing history', () => {
    revert('timer');
    expect(existsSync(history())).toBe(false);
  });

  it.skipIf(skip)('tolerates a missing directory', () => {
    rmSync(dirname(history()), { recursive: true });
    revert('boot');
    expect(existsSync(dirname(history()))).toBe(false);
  });

  it.skipIf(skip)('tolerates a history that is a directory', () => {
    mkdirSync(history());
    revert('boot');
    expect(statSync(history()).isDirectory()).toBe(true);
  });

  it.skipIf(skip)('does not replace a link', () => {
    writeFileSync(at('elsewhere'), `${entry(`${ID}-7`, 'started')}\n`);
    symlinkSync(at('elsewhere'), history());
    revert('timer');
    expect(results()).toEqual([`${ID}-7 started`]);
  });

  it.skipIf(skip)('tolerates a history that cannot be written', () => {
    writeFileSync(history(), `${entry(`${ID}-7`, 'started')}\n`);
    // As with a full disk: the copy cannot be created.
    mkdirSync(join(dirname(history()), '.history.jsonl.kubeletadm.revert'));
    chmodSync(dirname(history()), 0o500);
    revert('timer');
    // Other users than root could not remove it.
    chmodSync(dirname(history()), 0o700);
    expect(results()).toEqual([`${ID}-7 started`]);
  });

  it.skipIf(skip)('tolerates a corrupt history', () => {
    writeFileSync(history(), Buffer.from([0, 255, 10, 34, 0, 10]));
    revert('timer');
    expect(parseHistory(readFileSync(history(), 'latin1'))).toEqual([]);
  });

  it.skipIf(skip)('ignores an id that a host has damaged', () => {
    const record = at(`${COMMIT_DIRECTORY}/commit/record`);
    writeFileSync(record, readFileSync(record, 'utf8').replace(ID, '.*/e touch /tmp/x'));
    writeFileSync(history(), `${entry(`${ID}-7`, 'started')}\n`);
    revert('timer');
    expect(results()).toEqual([`${ID}-7 started`]);
  });
});
