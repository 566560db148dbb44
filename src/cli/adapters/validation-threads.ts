import { realpath } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import type { FileRules, FileVerdict } from '../output/file-verdict.ts';
import { type FileOptions, validateFiles } from '../validate-files.ts';
import { localInput } from './input-local.ts';

/** With fewer files per thread, starting the thread takes longer than it saves. */
const MIN_FILES_OF_THREAD = 250;
const MAX_THREADS = 8;
/** Number of files that a thread takes at once. */
const BATCH = 50;

interface Work {
  readonly files: readonly string[];
  readonly rules: FileRules;
  /** Shared by the threads: the number of batches that they have taken. */
  readonly taken: Int32Array;
}

interface Batch {
  readonly index: number;
  readonly verdicts: readonly FileVerdict[];
}

/**
 * Validates files as `validateFiles` does, on all processors: each thread runs this program again, see `validateAsThread`.
 * @param script the running program
 * @returns null if threads do not help: few files or processors; standard input, which only the main thread can
 *   read; or no built script that a thread can start (a single executable, the sources)
 */
export async function validateInThreads(
  script: string,
  files: readonly string[],
  rules: FileRules,
): Promise<readonly FileVerdict[] | null> {
  const count = Math.min(availableParallelism(), Math.floor(files.length / MIN_FILES_OF_THREAD), MAX_THREADS);
  if (count < 2 || files.includes('-')) return null;
  const path = await realpath(script).catch(() => '');
  if (!/\.[cm]?js$/.test(path)) return null;
  const work: Work = { files, rules, taken: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) };
  const batches = await Promise.all(Array.from({ length: count }, () => runThread(path, work)));
  return batches
    .flat()
    .sort((a, b) => a.index - b.index)
    .flatMap(({ verdicts }) => verdicts);
}

function runThread(path: string, work: Work): Promise<readonly Batch[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(path, { workerData: work });
    worker.once('message', resolve).once('error', reject);
    // After the message, this has no effect.
    worker.once('exit', (code) => reject(new Error(`a thread of the validation exited with code ${code} without a result`)));
  });
}

/** The program of a thread: takes batches of files until none is left, then sends their verdicts. */
export async function validateAsThread(): Promise<void> {
  const { files, rules, taken } = workerData as Work;
  const fileOptions: FileOptions = { ...rules, catalogue: await loadCatalogue(), kubelets: null };
  const input = localInput(process.stdin, process.stderr);
  const batches: Batch[] = [];
  for (let index = Atomics.add(taken, 0, 1); index * BATCH < files.length; index = Atomics.add(taken, 0, 1)) {
    const verdicts = await validateFiles(input, files.slice(index * BATCH, (index + 1) * BATCH), fileOptions);
    batches.push({ index, verdicts });
  }
  parentPort?.postMessage(batches);
}
