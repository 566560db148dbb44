import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { renderTemplate, type Templates } from '../../../../src/codec/render-template.ts';
import { parseSource, type SourceNode, sourceToExactJson } from '../../../../src/codec/source.ts';
import { loadTemplates } from '../../../../src/template-files.ts';

let templates: Templates;

beforeAll(async () => {
  templates = await loadTemplates();
});

/** As kubelet and kubeadm read the file. */
function read(path: string, context: Parameters<typeof renderTemplate>[2]): unknown {
  const { documents, problems } = parseSource(String(renderTemplate(templates, path, context)), path);
  expect(problems).toEqual([]);
  expect(documents).toHaveLength(1);
  return sourceToExactJson(documents[0]?.root as SourceNode);
}

const text = fc.oneof(
  fc.string().filter((value) => !value.includes('\ufffd')),
  fc.string({ unit: fc.constantFrom(...'ab01 -:#?\'"\n\t,[]{}&*!|>%@`.~yn_eE+') }),
);

describe('rendered files of a kubelet', () => {
  it('config.yaml reads back as the configuration', () => {
    const value = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 3 }, text, fc.integer(), fc.boolean(), fc.array(tie('value')), fc.dictionary(text, tie('value'))),
    })).value;
    const config = fc.dictionary(text, value, { minKeys: 1 }).map((json) => JSON.parse(JSON.stringify(json)) as Record<string, string>);
    fc.assert(
      fc.property(config, (desired) => {
        expect(read('/var/lib/kubelet/config.yaml', { config: desired })).toEqual(desired);
      }),
    );
  });

  it('instance-config.yaml reads back as the CRI socket', () => {
    fc.assert(
      fc.property(text, (criSocket) => {
        expect(read('/var/lib/kubelet/instance-config.yaml', { criSocket })).toEqual({ containerRuntimeEndpoint: criSocket });
      }),
    );
  });
});
