import type { Command } from 'commander';
import type { On } from './command.ts';
import type { ExplainRequest } from './explain.ts';
import { addSections } from './help-layout.ts';
import { readOutputOption } from './options.ts';
import { readFormat } from './request-parts.ts';

/** `explain [CODE]`. */
export function defineExplain(explain: Command, on: On): void {
  explain
    .argument(
      '[code]',
      'code of a problem or name of a preflight check, e.g. HOST_LOCKED or Port-10250; a part of a code, e.g. TOKEN, lists the codes that contain it (default: list all codes)',
    )
    .addOption(readOutputOption());
  on(
    explain,
    ([code = ''], options): ExplainRequest => ({ code, format: readFormat(options) }),
    async (...args) => (await import('./explain.ts')).runExplainCode(...args),
  );
  addSections(explain, {
    notes: `Errors and warnings end with their code in brackets. The texts are those of docs/troubleshooting.md and docs/problems-*.md.
For fields of KubeletConfiguration, flags and feature gates, see kubeletadm config explain.`,
    examples: `  kubeletadm explain HOST_LOCKED
  kubeletadm explain TOKEN`,
  });
}
