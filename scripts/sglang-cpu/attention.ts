// The flags of the server's attention on this CPU, and the environment by which lean_attention.py takes them.

export const ATTENTION_OPTIONS = {
  attention: { type: 'string', default: 'released' },
  'attention-threads': { type: 'string', default: '1' },
} as const;

interface Attention {
  readonly attention: string;
  readonly 'attention-threads': string;
}

export function attentionEnvironment({ attention, 'attention-threads': threads }: Attention): Record<string, string> {
  if (attention === 'released') return {};
  return {
    SSR_LEAN_ATTENTION: attention,
    SSR_LEAN_ATTENTION_THREADS: threads,
    ...(threads !== '1' && { OMP_WAIT_POLICY: 'PASSIVE' }),
  };
}
