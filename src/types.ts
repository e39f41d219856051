// Every contract of the project, types only: what the algorithm, the engines, the tools and the records agree on.
// Units stand in the names; token ids are the truth and text is a view of them.

/** A picture as every component sees it: encoded bytes whose EXIF orientation has already been applied. */
export interface Image {
  /** Hex SHA-256 of `bytes`; the picture's name in records, caches and file names. */
  readonly sha256: string;
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly width: number;
  readonly height: number;
}

/** How the model turns pixels into tokens; pixel counts are areas of the resized picture. */
export interface ImageGeometry {
  readonly patchSize: number;
  readonly mergeSize: number;
  readonly minPixels: number;
  readonly maxPixels: number;
}

/**
 * A token history as an engine reads it. `ids` are the *sent* ids: one image_pad per image, in the order of `images`.
 * `length` counts *expanded* positions, where each image takes as many as its geometry says.
 */
export interface TokenContext {
  /** Names the trajectory, so that an engine can keep its cache in one place. */
  readonly trajectory: string;
  readonly ids: readonly number[];
  readonly images: readonly Image[];
  readonly length: number;
}

export interface EngineInfo {
  readonly engine: string;
  readonly version: string;
  readonly model: string;
  /** Identifies the weights (a hash or the server's weight version). */
  readonly weights: string;
  readonly vocabularySize: number;
  /** Most expanded positions a context may have. */
  readonly contextLength: number;
  readonly geometry: ImageGeometry;
}

/** Work of one engine call in tokens (expanded positions). computed + cached = all positions the call needed. */
export interface Usage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly computedTokens: number;
  readonly imagesEncoded: number;
  /** Part of the call that is no latency of the model: failed attempts, pauses before the next, queueing in this client. */
  readonly waitedMs?: number;
}

export interface TokenLogprob {
  readonly id: number;
  /** Natural log of the token's probability given everything before it, at temperature 1 for scoring. */
  readonly logprob: number;
}

export interface Scoring {
  /** One row per continuation, in the order given; one entry per token of that continuation. */
  readonly rows: readonly (readonly TokenLogprob[])[];
  readonly usage: Usage;
}

/** The action sampling parameters, eta in the paper. temperature 0 is greedy; topK 0 keeps the whole vocabulary. */
export interface Sampling {
  readonly maxNewTokens: number;
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly seed: number;
  readonly stopIds: readonly number[];
  /** Never produced; used to keep sampled actions free of vision tokens. */
  readonly bannedIds: readonly number[];
}

export type FinishReason = 'stop' | 'length';

export interface Generation {
  /** New ids, the stop id included when finishReason is `stop`. */
  readonly tokens: readonly TokenLogprob[];
  readonly finishReason: FinishReason;
  readonly usage: Usage;
}

export interface EngineCallOptions {
  readonly signal?: AbortSignal;
}

export interface GenerateOptions extends EngineCallOptions {
  /** Sees each token as it is produced, so that the end of written reasoning can be told when it happens. */
  readonly onToken?: (token: TokenLogprob) => void;
}

export interface PrefillOptions extends EngineCallOptions {
  /** A prefix that all trajectories share (the system prompt): computed once in every place that serves them, and kept. */
  readonly shared?: boolean;
}

/** The four verbs of the method. Every engine throws EngineError when it cannot keep a promise made here. */
export interface Engine {
  describe(): Promise<EngineInfo>;
  /** Zero new tokens: afterwards every position of the context is cached. */
  prefill(context: TokenContext, options?: PrefillOptions): Promise<Usage>;
  /** Log-probabilities of each continuation's tokens behind the same context. */
  score(context: TokenContext, continuations: readonly (readonly number[])[], options?: EngineCallOptions): Promise<Scoring>;
  generate(context: TokenContext, sampling: Sampling, options?: GenerateOptions): Promise<Generation>;
  /** The trajectory has ended; its cache may go. */
  release(trajectory: string): Promise<void>;
  close(): Promise<void>;
}

/** ids in, ids out; `encode` adds nothing of its own. */
export interface Tokenizer {
  encode(text: string): number[];
  decode(ids: readonly number[]): string;
  /** The single id of an added token such as `<|im_end|>`; throws when the tokenizer has none. */
  idOf(token: string): number;
  /** Contents of all added tokens, which outside text must never spell. */
  readonly addedTokens: readonly string[];
  /** Hex SHA-256 of tokenizer.json. */
  readonly sha256: string;
}

export interface LibraryEntry {
  readonly id: string;
  readonly text: string;
  readonly expectedActions: readonly string[];
}

/** A library tokenised once for one dialect and tokenizer. Order is scoring order and tie order. */
export interface Candidate extends LibraryEntry {
  /** Ids of the wrapped text, delimiters included. */
  readonly ids: readonly number[];
}

export interface Question {
  readonly id: string;
  readonly type: string;
  readonly text: string;
  readonly images: readonly Image[];
  /** Any of these is right; empty when the data set has no gold. */
  readonly answers: readonly string[];
  /** Numbers from low to high are right too, where the data set gives such ranges. */
  readonly ranges?: readonly (readonly [low: number, high: number])[];
  /** Candidate id per turn of a reference trajectory, where the benchmark knows one. */
  readonly expected?: readonly string[];
}

export type Action =
  | { readonly kind: 'answer'; readonly text: string }
  | { readonly kind: 'image_search_tool' }
  | { readonly kind: 'text_search_tool'; readonly query: string }
  | {
      readonly kind: 'image_zoom_in_tool';
      /** x1, y1, x2, y2 in 0..1000 of the picture's width and height. */
      readonly box: readonly [number, number, number, number];
      readonly label: string;
      readonly imageIndex: number;
    }
  | { readonly kind: 'invalid'; readonly reason: string };

export interface SearchResult {
  readonly title?: string;
  readonly text?: string;
  readonly url?: string;
  readonly thumbnail?: Image;
}

/** What a tool gives back. `error` is told to the model, which may go on; a failure of the tool itself is thrown. */
export type ToolResult =
  | { readonly kind: 'results'; readonly results: readonly SearchResult[] }
  | { readonly kind: 'image'; readonly image: Image }
  | { readonly kind: 'error'; readonly message: string };

export interface TextSearch {
  readonly name: string;
  search(query: string, signal?: AbortSignal): Promise<readonly SearchResult[]>;
}

export interface ImageSearch {
  readonly name: string;
  search(image: Image, signal?: AbortSignal): Promise<readonly SearchResult[]>;
}

export interface Crop {
  /** Box in 0..1000; throws ToolInputError for a degenerate box. */
  crop(image: Image, box: readonly [number, number, number, number], signal?: AbortSignal): Promise<Image>;
}

/** An absent tool ends the trajectory with `tool-disabled` when the model asks for it. */
export interface Toolbox {
  readonly textSearch?: TextSearch;
  readonly imageSearch?: ImageSearch;
  readonly crop?: Crop;
}

/** Text with its pictures: one `<|image_pad|>` in `text` per image. */
export interface Segment {
  readonly text: string;
  readonly images: readonly Image[];
}

/** The agent's format: everything that is text between the harness and one family of checkpoints. */
export interface Dialect {
  readonly name: string;
  /** s, the part that all questions share. */
  systemTurn(): string;
  /** q, ending with the assistant prefix. */
  questionTurn(question: Question): Segment;
  wrapReasoning(text: string): string;
  /** `images` is the registry, question's picture first: some formats write boxes in pixels of what the model sees. */
  parseAction(text: string, images: readonly Pick<Image, 'width' | 'height'>[]): Action;
  /** o_t, ending with the next assistant prefix; `closed` says that the action already ended with the stop token. */
  observation(result: ToolResult, imageCount: number, closed: boolean): Segment;
  readonly stopToken: string;
  /** Added tokens an action may never contain when it is sampled. */
  readonly visionTokens: readonly string[];
}

/** The decision of one turn by selection: everything needed to check it again without an engine. */
export interface Selection {
  readonly index: number;
  readonly candidate: string;
  /** S_i per candidate, in library order. */
  readonly scores: readonly number[];
  /** softmax(S / tau) (tau 0: softmax(S), for information only). */
  readonly probabilities: readonly number[];
  readonly logProbability: number;
  /** Best score minus second best, in nats; null for a library of one. */
  readonly margin: number | null;
  readonly tokenLogprobs: readonly (readonly number[])[];
}

export interface Reasoning {
  /** z_t: the ids to insert. */
  readonly ids: readonly number[];
  /** Null where z_t was not chosen from a library. */
  readonly selection: Selection | null;
  /** Log-probs of z_t where the model wrote it, token by token; null where it was inserted. */
  readonly written: readonly number[] | null;
  /** The entry that a written thought was meant to be: the same text at distance 0, else the nearest. */
  readonly match?: { readonly candidate: string; readonly distance: number };
  /** The rest of the same generation, where reasoning and action are written in one breath: it is under way already. */
  readonly action: Promise<Generation> | null;
  readonly usage: Usage;
}

/** One way to reason before acting. */
export interface Reasoner {
  readonly name: string;
  /** Most tokens a turn's reasoning may add, for the context check. */
  readonly maxTokens: number;
  reason(context: TokenContext, eta: Sampling, random: () => number, signal?: AbortSignal): Promise<Reasoning>;
}

export type Phase = 'system' | 'prefill' | 'reasoning' | 'action' | 'tool' | 'media';

/** Runs a phase and may time it; the algorithm itself holds no clock. */
export type Span = <T>(phase: Phase, run: () => Promise<T>) => Promise<T>;

export type StopStatus = 'answer' | 'invalid-output' | 'tool-error' | 'tool-disabled' | 'turn-limit' | 'context-limit';

/** One finished turn. z_t and a_t follow h_t in the context directly; o_t follows them. */
export interface Turn {
  /** |h_t| in sent ids, and L_t in expanded positions. */
  readonly historyLength: number;
  readonly historyPositions: number;
  readonly prefill: Usage;
  readonly reasoning: Reasoning;
  readonly generation: Generation;
  readonly actionText: string;
  readonly action: Action;
  /** Null when the trajectory stopped before a tool answered. */
  readonly observation: Observation | null;
}

export interface Observation {
  readonly ids: readonly number[];
  readonly images: readonly Image[];
  readonly result: ToolResult;
}

/** How a trajectory ended. `answer` is syntactic; correctness is the judge's. */
export interface Stop {
  readonly status: StopStatus;
  /** Why, for every status but `answer`. */
  readonly reason: string | null;
  readonly answer: string | null;
}

export interface Verdict {
  readonly correct: boolean;
  readonly judge: string;
}

export interface Judge {
  readonly name: string;
  /** Throws JudgeError when no verdict can be had; that is never a wrong answer. */
  judge(question: Question, answer: string, signal?: AbortSignal): Promise<Verdict>;
}

export interface Benchmark {
  readonly name: string;
  readonly split: string;
  /** Hex SHA-256 over the data files, so that two runs can be compared. */
  readonly sha256: string;
  /** Ids and types in the benchmark's order, without loading a picture. */
  readonly entries: readonly { readonly id: string; readonly type: string }[];
  load(id: string): Promise<Question>;
}
