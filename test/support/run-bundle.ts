import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CliResult } from './run-cli.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/kubeletadm.mjs', import.meta.url));

/**
 * The path of the built program.
 * @throws Error if the program was not built (`npm run build`)
 */
export function builtProgram(): string {
  if (!existsSync(BUNDLE)) throw new Error(`${BUNDLE} does not exist: run npm run build`);
  return BUNDLE;
}

/**
 * Runs a command line with the built program in a separate process, as users do, and returns its output.
 * @throws Error if the program was not built
 */
export function runCommand(
  argv: readonly string[],
  { env = {}, stdin = '' }: { readonly env?: Readonly<Record<string, string>>; readonly stdin?: string } = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [builtProgram(), ...argv], { env: { PATH: process.env.PATH ?? '', ...env } });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  child.stdin.on('error', () => undefined).end(stdin);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => (code === null ? reject(new Error(`killed by ${signal}`)) : resolve({ code, ...output })));
  });
}
