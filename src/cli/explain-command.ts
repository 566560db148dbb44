import type { Command } from 'commander';
import { AppError, type ExitCode, isAppError, usageError } from '../base/errors.ts';
import { findProblemEntry, matchingProblemCodes, type ProblemEntry, readProblemEntries } from '../base/problem-entries.ts';
import { closestName } from '../base/text/closest-name.ts';
import { renderTable, renderWrappedTable } from '../base/text/table.ts';
import { wrapText } from '../base/text/wrap-line.ts';
import type { CommandOptions, On } from './command.ts';
import type { ConfigExplainRequest } from './config-explain.ts';
import { type NodeExplainRequest, runNodeExplain } from './explain-node.ts';
import { addNodeExplainOptions, nodeExplainRequest } from './explain-options.ts';
import { addSections, DEFAULT_KUBERNETES_MINOR, NEWEST_KUBERNETES_MINOR } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { readOutputOption } from './options.ts';
import type { Services } from './output/services.ts';
import { readFormat } from './request-parts.ts';

/** `explain [WORD|HOST|NODE] [FIELD]`: the union of the code of a problem, `config explain` and `node explain`. */
export function defineExplain(explain: Command, on: On): void {
  explain
    .argument(
      '[word]',
      'code of a problem, preflight check, field of KubeletConfiguration, flag or feature gate, or a part of one; a host as [user@]ADDRESS[:port] or host/ADDRESS; or a Node as node/NAME (default: list all codes)',
    )
    .argument('[field]', 'field of a kubelet: show its effective value on the host or Node, and the source of the value')
    .addOption(readOutputOption(['text', 'wide', 'json', 'yaml']))
    .option('--kubernetes-version <version>', `kubelet version, 1.10 to ${NEWEST_KUBERNETES_MINOR} (default: ${DEFAULT_KUBERNETES_MINOR})`)
    .option('--recursive', 'include nested fields')
    // The argument can be a kubelet flag.
    .allowUnknownOption()
    .allowExcessArguments();
  on(addNodeExplainOptions(explain), explainRequest, runExplain);
  addSections(explain, {
    notes: `Errors and warnings end with their code in brackets. The texts are those of docs/troubleshooting.md and docs/problems-*.md. With a second argument, the first one is a host, or a Node if it begins with node/.`,
    examples: `  kubeletadm explain HOST_LOCKED
  kubeletadm explain maxPods --kubernetes-version 1.30
  kubeletadm explain --node-labels
  kubeletadm explain swap
  kubeletadm explain edge-017 maxPods
  kubeletadm explain node/worker-1 maxPods`,
  });
}

type ExplainRequest = NodeExplainRequest | ConfigExplainRequest;

/** What is no word: a prefix, a user, a port or an IP address. */
const HOST_OR_NODE = /^(?:nodes?|hosts?)\/|@|^localhost$|:\d+$|^\d+\.\d+\.\d+\.\d+$|^[\da-f]*:[\da-f:.]+$/i;

function explainRequest([word = '', field, ...more]: readonly string[], options: CommandOptions): ExplainRequest {
  const unknown = [field ?? '', ...more].find((each) => each.startsWith('-'));
  if (unknown !== undefined) throw usageError(`unknown option ${unknown} for explain`, 'See kubeletadm explain --help');
  if (more.length > 0) throw usageError('explain takes one word, or a host or Node and a field', 'See kubeletadm explain --help');
  if (field !== undefined || HOST_OR_NODE.test(word)) return nodeExplainRequest(word, field, options);
  return {
    name: word,
    kubernetesVersion: flagText(options, 'kubernetesVersion'),
    recursive: options.recursive === true,
    format: options.output === 'wide' ? 'text' : readFormat(options),
  };
}

async function runExplain(services: Services, request: ExplainRequest): Promise<ExitCode> {
  return 'target' in request ? runNodeExplain(services, request) : explainWord(services, request);
}

/** A code, a field, a flag or a feature gate; otherwise the codes and the names that contain the word. */
async function explainWord(services: Services, request: ConfigExplainRequest): Promise<ExitCode> {
  const { name: word, format } = request;
  const [{ renderDocument }, { renderExplanation }, { explainName }] = await Promise.all([
    import('./output/show-document.ts'),
    import('../kubeadm/explain/render-explanation.ts'),
    import('./config-explain.ts'),
  ]);
  const { output } = services;
  const print = (text: () => string, document: object): ExitCode => {
    output.stdout(format === 'text' ? text() : renderDocument(document, format));
    return 0;
  };
  const entries = readProblemEntries(await services.problemPages());
  const isFlag = word.startsWith('-');
  const entry = word === '' || isFlag ? null : findProblemEntry(word, entries);
  const show = (found: ProblemEntry): ExitCode => print(() => renderEntry(found), { kind: 'ProblemExplanation', ...found });
  if (entry?.codes.includes(word)) return show(entry);
  const codes = isFlag ? [] : matchingProblemCodes(word, entries);
  const items = codes.map((each) => ({ code: each, cause: findProblemEntry(each, entries)?.cause ?? '' }));
  const table = (): string => codeTable(items, output.width?.());
  const isCode = word === '' || CODE.test(word);
  const found = isCode ? null : await explainName(request).catch((error: unknown) => withoutName(error, { word, codes, entry, entries }));
  if (found !== null && (found.kind !== 'Matches' || codes.length === 0)) return print(() => renderExplanation(found), found);
  if (found !== null)
    return print(() => `${renderExplanation(found)}\nCodes that contain ${word}:\n\n${table()}`, { ...found, problems: items });
  if (entry !== null) return show(entry);
  if (codes.length === 0) throw unknownCode(word, entries);
  return print(table, { kind: 'ProblemList', items });
}

/** What a code looks like; names of kubelets have small letters. */
const CODE = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/;

function codeTable(items: readonly { readonly code: string; readonly cause: string }[], width: number | undefined): string {
  const rows = [['CODE', 'CAUSE'], ...items.map(({ code, cause }) => [code, cause.replaceAll('\n', ' ')])];
  return `${renderWrappedTable(rows, { width, flexible: 1 }).join('\n')}\n`;
}

interface WordCodes {
  readonly word: string;
  readonly entry: ProblemEntry | null;
  /** The codes that contain the word. */
  readonly codes: readonly string[];
  readonly entries: readonly ProblemEntry[];
}

/** Null: the word is a code or a part of one. */
function withoutName(error: unknown, { word, codes, entry, entries }: WordCodes): null {
  if (!isAppError(error, 'EXPLAIN_UNKNOWN_NAME') || word.startsWith('-')) throw error;
  if (entry !== null || codes.length > 0) return null;
  const others = `For the configuration of a host or a Node, run kubeletadm explain host/${word} or node/${word}`;
  const code = closestCode(word, entries);
  const guesses = [error.problems[0]?.hint ?? '', code === null ? '' : `Did you mean ${code}?`];
  const guess = guesses.find((each) => each.startsWith('Did you mean'));
  // Names of fields, flags and gates have almost no digits; names of hosts often end with one.
  const isHostLike = /\d/.test(word);
  const hint = [guess, isHostLike || guess === undefined ? others : undefined].filter((each) => each !== undefined).join(' ');
  const message = `${word} is neither a code nor a field, flag or feature gate of the kubelet`;
  throw new AppError({ code: error.code, message, hint }, { exitCode: 2, cause: error });
}

const WIDTH = 76;

function renderEntry({ codes, symptom, cause, fix, commands, page }: ProblemEntry): string {
  const rows: readonly (readonly [string, string])[] = [
    [codes.length === 1 ? 'CODE:' : 'CODES:', codes.join(', ')],
    ['SYMPTOM:', symptom ?? ''],
    ['CAUSE:', cause],
    ['FIX:', fix === '' ? 'Run:' : fix],
  ];
  const lines = rows.flatMap(([title, text]) =>
    text
      .split('\n')
      .flatMap((line) => wrapText(line, WIDTH))
      .map((line, i) => [i === 0 ? title : '', line]),
  );
  const examples = commands.length === 0 ? [] : ['', ...commands.map((command) => `  ${command}`)];
  return `${[...renderTable(lines), ...examples, '', `See ${page}`].join('\n')}\n`;
}

function closestCode(word: string, entries: readonly ProblemEntry[]): string | null {
  return closestName(
    word,
    entries.flatMap(({ codes }) => codes),
  );
}

function unknownCode(code: string, entries: readonly ProblemEntry[]): AppError {
  const guess = closestCode(code, entries);
  const hint = guess === null ? 'To list all codes, run kubeletadm explain' : `Did you mean ${guess}?`;
  return new AppError({ code: 'EXPLAIN_UNKNOWN_CODE', message: `the code ${code} is unknown`, hint }, { exitCode: 2 });
}
