import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bundle } from '../support/bundle.ts';
import { writeDockerArchive } from '../support/image-archives.ts';
import { runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const BIN = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));
const built = mkdtempSync(join(tmpdir(), 'ka-interrupt-'));
let program = '';
let directory = '';
const at = (path: string): string => join(directory, path);

beforeAll(async () => {
  program = await bundle(BIN, built);
});
afterAll(() => rmSync(built, { recursive: true, force: true }));
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ka-interrupt-'));
  for (const each of ['out', 'bin', 'tmp']) mkdirSync(at(each));
  const { stdout } = await runCommand(['config', 'images', 'list', '--kubernetes-version', 'v1.36.2']);
  await writeDockerArchive(at('images.tar'), { images: stdout.trim().split('\n') });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const create = (...args: readonly string[]): ChildProcess =>
  spawn(
    process.execPath,
    [program, 'bundle', 'create', '-o', at('out/b.tar'), '--arch', 'amd64', '--kubernetes-version', 'v1.36.2', ...args],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PATH: `${at('bin')}:${process.env.PATH}`, TMPDIR: at('tmp') } },
  );
const withImages = (...args: readonly string[]): ChildProcess => create('--images-from', at('images.tar'), ...args);

/** A file without blocks on the disk, which takes seconds to read. */
function largeFile(bytes: number): string {
  writeFileSync(at('large'), '');
  truncateSync(at('large'), bytes);
  return at('large');
}

function isReading({ pid }: ChildProcess, file: string): boolean {
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === file;
    } catch {
      return false;
    }
  });
}

/** Interrupts the command when the condition holds; the result, and the files that are left. */
async function interrupt(child: ChildProcess, when: () => boolean, again?: () => boolean) {
  const exit = once(child, 'close') as Promise<[number | null]>;
  const reported = text(child.stderr as NodeJS.ReadableStream);
  await untilTrue(when);
  const began = performance.now();
  child.kill('SIGINT');
  if (again !== undefined) {
    await untilTrue(again);
    child.kill('SIGINT');
  }
  const [code] = await exit;
  return {
    code,
    stderr: await reported,
    seconds: (performance.now() - began) / 1000,
    left: [...readdirSync(at('out')), ...readdirSync(at('tmp'))],
  };
}

const MESSAGE = expect.stringContaining('interrupted by SIGINT');

describe.skipIf(process.platform !== 'linux')('an interrupted bundle create', { timeout: 60_000 }, () => {
  it('ends while it reads an input', async () => {
    const child = withImages('--file', largeFile(7 * 1024 ** 3));
    const { seconds, ...result } = await interrupt(child, () => isReading(child, at('large')));
    expect(result).toEqual({ code: 130, stderr: MESSAGE, left: [] });
    expect(seconds).toBeLessThan(6);
  });

  it('ends while it reads an archive of images', async () => {
    const child = withImages('--images-from', largeFile(7 * 1024 ** 3));
    const { seconds, ...result } = await interrupt(child, () => isReading(child, at('large')));
    expect(result).toEqual({ code: 130, stderr: MESSAGE, left: [] });
    expect(seconds).toBeLessThan(6);
  });

  it('ends while it writes the bundle, and removes the file', async () => {
    const child = withImages('--file', largeFile(500 * 1024 ** 2));
    const { seconds, ...result } = await interrupt(child, () => readdirSync(at('out')).length > 0);
    expect(result).toEqual({ code: 130, stderr: MESSAGE, left: [] });
    expect(seconds).toBeLessThan(6);
  });

  it('ends while a program fetches an image, also a program that ignores the signal', async () => {
    writeFileSync(at('bin/skopeo'), `#!/bin/sh\ntrap '' TERM\necho part >"$(ls -d ${at('tmp')}/*)/0.tar"\n: >${at('started')}\nsleep 10\n`);
    chmodSync(at('bin/skopeo'), 0o755);
    const fetching = create('--images-with', 'skopeo');
    const { seconds, ...result } = await interrupt(fetching, () => existsSync(at('started')));
    expect(result).toEqual({ code: 130, stderr: MESSAGE, left: [] });
    expect(seconds).toBeLessThan(8);
  });

  it('leaves no temporary files after a second signal', async () => {
    const stopping = at('stopping');
    writeFileSync(
      at('bin/skopeo'),
      `#!/bin/sh\ntrap ': >${stopping}' TERM\n: >${at('started')}\nfor i in $(seq 300); do sleep 0.1; done\n`,
    );
    chmodSync(at('bin/skopeo'), 0o755);
    const child = create('--images-with', 'skopeo');
    const { code, left } = await interrupt(
      child,
      () => existsSync(at('started')),
      () => existsSync(stopping),
    );
    expect({ code, left }).toEqual({ code: 130, left: [] });
  });
});
