import type { Command } from 'commander';
import { AppError, type ExitCode } from '../base/errors.ts';
import { findProblemEntry, matchingProblemCodes, type ProblemEntry, readProblemEntries } from '../base/problem-entries.ts';
import { closestName } from '../base/text/closest-name.ts';
import { renderTable, renderWrappedTable, wrapText } from '../base/text/table.ts';
import type { On } from './command.ts';
import { addSections } from './help-layout.ts';
import { readOutputOption } from './options.ts';
import type { Services } from './output/services.ts';
import type { ReadFormat } from './output/show-document.ts';
import { readFormat } from './request-parts.ts';

/** `explain [CODE]`. */
export function defineExplain(explain: Command, on: On): void {
  explain
    .argument(
      '[code]',
      'code of a problem or name of a preflight check, e.g. HOST_LOCKED or Port-10250; a part of a code, e.g. TOKEN, lists the codes that contain it (default: list all codes)',
    )
    .addOption(readOutputOption());
  on(explain, ([code = ''], options): ExplainRequest => ({ code, format: readFormat(options) }), runExplainCode);
  addSections(explain, {
    notes: `Errors and warnings end with their code in brackets. The texts are those of docs/troubleshooting.md and docs/problems-*.md.
For fields of KubeletConfiguration, flags and feature gates, see kubeletadm config explain.`,
    examples: `  kubeletadm explain HOST_LOCKED
  kubeletadm explain TOKEN`,
  });
}

interface ExplainRequest {
  /** Empty: all codes. */
  readonly code: string;
  readonly format: ReadFormat;
}

/** `explain [CODE]`: the cause of a problem and its fix, or a list of codes. */
async function runExplainCode(services: Services, { code, format }: ExplainRequest): Promise<ExitCode> {
  const { renderDocument } = await import('./output/show-document.ts');
  const { output } = services;
  const entries = readProblemEntries(await services.problemPages());
  const entry = code === '' ? null : findProblemEntry(code, entries);
  if (entry !== null) {
    output.stdout(format === 'text' ? renderEntry(entry) : renderDocument({ kind: 'ProblemExplanation', ...entry }, format));
    return 0;
  }
  const codes = matchingProblemCodes(code, entries);
  if (codes.length === 0) throw unknownCode(code, entries);
  const items = codes.map((each) => ({ code: each, cause: findProblemEntry(each, entries)?.cause ?? '' }));
  const rows = [['CODE', 'CAUSE'], ...items.map((item) => [item.code, item.cause.replaceAll('\n', ' ')])];
  const table = renderWrappedTable(rows, { width: output.width?.(), flexible: 1 });
  output.stdout(format === 'text' ? `${table.join('\n')}\n` : renderDocument({ kind: 'ProblemList', items }, format));
  return 0;
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

function unknownCode(code: string, entries: readonly ProblemEntry[]): AppError {
  const guess = closestName(
    code,
    entries.flatMap(({ codes }) => codes),
  );
  const isCode = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/.test(code);
  const list = `To list all codes, run kubeletadm explain${isCode ? '' : `. For fields and flags of kubelets, run kubeletadm config explain ${code}`}`;
  return new AppError(
    {
      code: 'EXPLAIN_UNKNOWN_CODE',
      message: `the code ${code} is unknown`,
      hint: guess === null ? list : `Did you mean ${guess}?`,
    },
    { exitCode: 2 },
  );
}
