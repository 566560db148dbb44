import { stringify } from 'yaml';
import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { type RenderedFiles, type RenderRequest, renderNodeFiles } from '../fleet/use-cases/render-node-files.ts';
import type { Services } from './output/services.ts';
import type { DocumentFormat } from './output/show-document.ts';
import type { WithPlan } from './output/show-plan.ts';

/** `config render`: prints the files that init would write on a node. Nothing is compared or written. */
export async function runRender(services: Services, request: WithPlan<RenderRequest>): Promise<ExitCode> {
  const { verbosity, format, showOrigin } = request.plan;
  await renderNodeFiles(services, request, {
    reporter: services.reporter({ verbosity, format: 'text' }),
    rendered: (node) => services.output.document(renderFiles(showOrigin ? node : { ...node, origins: {} }, format)),
  });
  return 0;
}

function renderFiles({ host, files, origins }: RenderedFiles, format: DocumentFormat): string {
  if (format !== 'text') {
    const list = files.map(({ path, content, mode, owner }) => ({
      path,
      mode: mode.toString(8).padStart(4, '0'),
      owner,
      content: content.toString(),
      ...(origins[path] ? { origin: origins[path] } : {}),
    }));
    const document = { host, files: list };
    return format === 'json' ? `${printableJson(document, 2)}\n` : `---\n${stringify(document, { lineWidth: 0 })}`;
  }
  return files
    .map(({ path, content }) => {
      const notes = Object.entries(origins[path] ?? {}).map(([field, origin]) => `#   ${field}: ${origin}\n`);
      return `# ${path}\n${notes.join('')}${content.toString()}`;
    })
    .join('\n');
}
