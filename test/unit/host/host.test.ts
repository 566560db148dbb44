import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { hostOverTransport } from '../../../src/host/host-over-transport.ts';
import type { Operation } from '../../../src/host/operation/operation.ts';
import type { RunOptions, Transport } from '../../../src/host/transport.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

const NONCE = 'c0ffee';

/** A transport whose host has completed every command. */
function doneTransport(frames: number): { readonly transport: Transport; readonly runs: RunOptions[] } {
  const runs: RunOptions[] = [];
  const marks = Array.from({ length: frames }, (_, i) => `\n${NONCE} ${i} 0\n`).join('');
  const stdout = Buffer.from(`\n${NONCE} start 0\n${marks}`);
  return {
    runs,
    transport: {
      name: 'node1',
      run: async (_, options = {}) => {
        runs.push(options);
        return { exitCode: 0, signal: null, stdout, stderr: Buffer.alloc(0) };
      },
      close: async () => undefined,
    },
  };
}

describe('the timeout of one command on a host', () => {
  const command = { it: { kind: 'command', argv: ['true'] } } as const;
  const operation: Operation = { kind: 'run', argv: ['true'] };

  it.each([
    ['no timeout is set', undefined, {}, [undefined, 120_000]],
    ['more than the default', 300_000, {}, [300_000, 300_000]],
    ['less than the default, which operations ignore', 5_000, {}, [5_000, 120_000]],
    ['the caller overrides it', 300_000, { timeoutMs: 1_000_000 }, [1_000_000, 1_000_000]],
  ])('%s', async (_, commandTimeoutMs, options, expected) => {
    const { transport, runs } = doneTransport(1);
    const host = hostOverTransport(transport, { nonce: () => NONCE, ...(commandTimeoutMs === undefined ? {} : { commandTimeoutMs }) });
    await host.query(command, options);
    await host.perform([operation], options);
    expect(runs.map(({ timeoutMs }) => timeoutMs)).toEqual(expected);
  });
});

describe('a change with a large file', () => {
  it('checks that the change is still unconfirmed after the file was sent and before it is installed', async () => {
    const { transport, runs } = doneTransport(4);
    const content = { sha256: '', size: 1, head: '', pieces: () => [gzipSync('x').toString('base64')] };
    await hostOverTransport(transport, { nonce: () => NONCE }).perform([
      { kind: 'arm-revert', revert: { id: 'abcd', timeoutSeconds: 300, owner: 'alice', paths: [], units: [], reload: false } },
      { kind: 'put-file', path: '/opt/agent', mode: 0o755, owner: 'root:root', content },
      { kind: 'run', argv: ['systemctl', 'restart', 'agent'] },
    ]);
    const [armed = '', piece = '', rest = ''] = runs.map(({ stdin = '' }) => stdin);
    expect([armed.includes('commit_arm abcd'), piece.includes('w_piece /opt/agent')]).toEqual([true, true]);
    expect(rest.indexOf('commit_check abcd')).toBeGreaterThan(0);
    expect(rest.indexOf('commit_check abcd')).toBeLessThan(rest.indexOf('w_put /opt/agent'));
  });
});

describe('the log of a host', () => {
  const query = { it: { kind: 'file', path: '/etc/hostname' } } as const;
  const write: Operation = { kind: 'write-file', path: '/etc/secret', mode: 0o600, owner: 'root:root', content: 'hunter2' };
  const logOf = async (verbosity: number): Promise<readonly string[]> => {
    const recording = recordingReporter();
    const host = hostOverTransport(doneTransport(1).transport, { nonce: () => NONCE, reporter: { ...recording, verbosity } });
    await host.query(query).catch(() => undefined);
    await host.perform([write]);
    return recording.events.map(({ code, message }) => `${code} ${message}`);
  };

  it('shows queries and operations with -v 2, without contents of files', async () => {
    expect(await logOf(2)).toEqual(['HOST_ASKED reads /etc/hostname', 'HOST_DOES write-file /etc/secret']);
  });

  it('is empty with a lower verbosity', async () => {
    expect(await logOf(1)).toEqual([]);
  });
});
