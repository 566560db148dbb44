import { Readable, Writable } from 'node:stream';
import type { Services } from '../../src/cli/output/services.ts';
import { runCli } from '../../src/cli/run.ts';
import { createServices } from '../../src/wiring.ts';
import { issuerOfOneKey } from './issuer-of-one-key.ts';

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Replaces services, e.g. the connection to a host. */
  readonly services?: (real: Services) => Partial<Services>;
}

const ONE_KEY = issuerOfOneKey();

/** Runs a command line in this process, with the real adapters, and returns its output. */
export async function runCommand(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const stdout = new TextSink();
  const stderr = new TextSink();
  const services = createServices({
    env: { PATH: process.env.PATH ?? '', ...options.env },
    stdin: Readable.from([options.stdin ?? '']),
    stdout,
    stderr,
    signal: options.signal ?? new AbortController().signal,
  });
  // A dry run uses nothing of this; RSA keys are slow to generate.
  const issuer = argv.includes('--dry-run') ? { certificateIssuer: async () => ONE_KEY } : {};
  const code = await runCli(argv, { ...services, ...issuer, ...options.services?.(services) }, '0.0.0-test');
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** Keeps the text that is written. */
export class TextSink extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8');
    done();
  }
}
