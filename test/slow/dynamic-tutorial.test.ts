import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from '../support/bundle.ts';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const PAGE = at('docs/dynamic-tutorial.md');
/** Commands, with their output where the page shows it. */
const BLOCK = /^```sh\n([\s\S]*?)^```\n(?:\n```text\n([\s\S]*?)^```\n)?/gm;

/** The blocks of the page, in order. */
function blocksOf(page: string): readonly { readonly commands: string; readonly printed: string | null }[] {
  return [...page.matchAll(BLOCK)].map(([, commands = '', printed]) => ({ commands, printed: printed ?? null }));
}

/**
 * The page with the current output of its commands; the first block is the lab. `UPDATE_DOCS=1` writes it.
 */
function pageWith(page: string, parts: readonly string[]): string {
  let block = -2;
  return page.replace(BLOCK, (whole, commands: string) => {
    block++;
    const printed = (parts[block] ?? '').trimEnd();
    return block < 0 ? whole : `\`\`\`sh\n${commands}\`\`\`\n${printed === '' ? '' : `\n\`\`\`text\n${printed}\n\`\`\`\n`}`;
  });
}

/**
 * Masks the varying parts of an output: times, versions, ports, column widths, the hash of facts detected on
 * the host, and states that may be too short to appear.
 */
function lasting(text: string): readonly string[] {
  return (
    text
      .trimEnd()
      .split('\n')
      .filter((line) => !/^(?:node\d )?(?:waiting|reporting)\b/.test(line))
      .map((line) =>
        line
          .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
          .replace(/my-node-config-\w{10}\b/g, 'my-node-config-HASH')
          .replace(/@\d+/g, '@VERSION')
          .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
          .replace(/\b(?:\d+m)?\d+s\b/g, 'AGE')
          .replace(/\b[0-9a-f]{8} +\S+@\S+ assigned /g, 'RUN OPERATOR assigned ')
          .replace(/\S+@\S+ assigned /g, 'OPERATOR assigned ')
          .replace(/\s+/g, ' ')
          .trimEnd(),
      )
      // A state is printed again after a short state between.
      .filter((line, index, lines) => line !== lines[index - 1])
  );
}

/** The first commands, with the status only after both agents have reported: a reader types more slowly. */
function afterReports(commands: string): string {
  return commands.replace(/^kubeletadm dynamic status .*$/m, 'until [ "$($& | grep -c " local ")" = 2 ]; do sleep 1; done\n$&');
}

describe('docs/dynamic-tutorial.md', () => {
  const directory = mkdtempSync(join(tmpdir(), 'dynamic-tutorial-'));
  const env = { ...process.env, HOME: directory, PATH: `${directory}${delimiter}${process.env.PATH ?? ''}`, KUBECONFIG: '' };
  const [lab, ...blocks] = blocksOf(readFileSync(PAGE, 'utf8'));
  let labProcess: ChildProcess;

  beforeAll(async () => {
    const program = await bundle(at('src/bin.ts'), directory);
    writeFileSync(join(directory, 'kubeletadm'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
    chmodSync(join(directory, 'kubeletadm'), 0o755);
    expect(lab?.commands).toMatch(/^kubeletadm lab /);
    labProcess = spawn('sh', ['-c', `exec ${lab?.commands ?? ''}`], { cwd: directory, env, stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise<void>((resolve, reject) => {
      let reported = '';
      labProcess.stdout?.on('data', (chunk: Buffer) => {
        reported += chunk.toString('utf8');
        if (reported.includes('Ctrl-C stops the lab.')) resolve();
      });
      labProcess.on('exit', (code) => reject(new Error(`the lab ended with ${code}: ${reported}`)));
    });
  }, 60_000);
  afterAll(async () => {
    labProcess.removeAllListeners('exit');
    const ended = new Promise((resolve) => labProcess.once('exit', resolve));
    if (labProcess.exitCode === null && labProcess.kill('SIGINT')) await ended;
    rmSync(directory, { recursive: true, force: true });
  });

  it('contains commands that print the documented output, in their order', async () => {
    const script = blocks.map(({ commands }, i) => `echo '=== ${i}'\n${i === 0 ? afterReports(commands) : commands}`).join('');
    const { code, output } = await run(script);
    const parts = output.split(/^=== \d+\n/m).slice(1);
    expect([code, parts.length], output).toEqual([0, blocks.length]);
    if (process.env.UPDATE_DOCS) writeFileSync(PAGE, pageWith(readFileSync(PAGE, 'utf8'), parts));
    const shown = blocks.flatMap(({ printed }, i) => (printed === null ? [] : [{ block: i, lines: lasting(printed) }]));
    const printed = shown.map(({ block }) => ({ block, lines: lasting(parts[block] ?? '') }));
    expect(printed).toEqual(shown);
    expect(blocks.filter((block) => block.printed === null).length).toBeLessThan(3);
  }, 400_000);

  function run(script: string): Promise<{ readonly code: number | null; readonly output: string }> {
    return new Promise((resolve) => {
      const child = spawn('bash', ['-eu', '-o', 'pipefail', '-c', `exec 2>&1\n${script}`], {
        cwd: directory,
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
      child.on('close', (code) => resolve({ code, output }));
    });
  }
});
